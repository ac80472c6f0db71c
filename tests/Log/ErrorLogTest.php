<?php

declare(strict_types=1);

namespace Weft\Tests\Log;

use PHPUnit\Framework\TestCase;
use Psr\Log\AbstractLogger;
use Weft\Internal\ErrorLog;
use Weft\Log\Internal\GuardedLogger;

/** What PHP's own log receives where a logger or an error handler has failed. */
final class ErrorLogTest extends TestCase
{
    private string $log = '';
    private string|false $before = false;

    protected function setUp(): void
    {
        $this->log = (string) tempnam(sys_get_temp_dir(), 'weft');
        $this->before = ini_set('error_log', $this->log);
    }

    protected function tearDown(): void
    {
        ini_set('error_log', (string) $this->before);
        unlink($this->log);
    }

    public function testItIsOneLineWithoutControlCharacters(): void
    {
        ErrorLog::write('failed: ', "a\nb\x1B[2J");

        self::assertStringEndsWith("] Weft: failed: a\\nb\\x1B[2J\n", $this->logged());
        self::assertSame(1, substr_count($this->logged(), "\n"));
    }

    public function testEachPartIsCutByItself(): void
    {
        ErrorLog::write('failed: ', str_repeat('x', 9_000), '; the warning was: ', str_repeat('y', 9_000));

        $expected = 'failed: ' . str_repeat('x', 8_192) . '… (9000 bytes); the warning was: ' . str_repeat('y', 8_192) . "… (9000 bytes)\n";
        self::assertStringEndsWith($expected, $this->logged());
    }

    public function testALoggerThatFailsAtLengthDoesNotHideTheRecord(): void
    {
        $failing = new class () extends AbstractLogger {
            /**
             * @param mixed $level
             * @param string|\Stringable $message
             * @param array<array-key, mixed> $context
             */
            public function log($level, $message, array $context = []): void
            {
                throw new \RuntimeException(str_repeat('x', 9_000));
            }
        };
        GuardedLogger::around($failing)->error('Order {order} is lost', ['order' => 7]);

        self::assertStringEndsWith("… (9000 bytes); the record was: Order 7 is lost\n", $this->logged());
    }

    private function logged(): string
    {
        return (string) file_get_contents($this->log);
    }
}
