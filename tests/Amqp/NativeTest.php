<?php

declare(strict_types=1);

namespace Weft\Tests\Amqp;

use PHPUnit\Framework\TestCase;
use Weft\UsageError;
use Weft\Native\AmqpConnection;
use Weft\Runtime\ForkedProcessError;
use Weft\Runtime\Internal\Scheduler;

/** What the native classes refuse. */
final class NativeTest extends TestCase
{
    private AmqpConnection $connection;

    protected function setUp(): void
    {
        $url = getenv('AMQP_URL');
        if ($url === false) {
            self::fail('AMQP_URL is not set: `make services` starts a broker and writes it to var/services/env');
        }
        $this->connection = Scheduler::await(AmqpConnection::open($url));
    }

    protected function tearDown(): void
    {
        if (isset($this->connection)) {
            Scheduler::await($this->connection->close());
        }
    }

    public function testAnArgumentThatContainsItselfIsRefused(): void
    {
        $arguments = [];
        $arguments['x'] = &$arguments;
        $this->expectException(UsageError::class);
        $this->expectExceptionMessage('"x" is nested deeper than 32 arrays');

        $this->connection->declare([], [['name' => 'weft.native', 'arguments' => $arguments]], []);
    }

    public function testANameThatIsNotUtf8IsRefused(): void
    {
        $this->expectException(UsageError::class);
        $this->expectExceptionMessage('must be UTF-8');

        $this->connection->declare([], [['name' => 'weft.native', 'arguments' => ["\xff" => 1]]], []);
    }

    public function testAForkedChildCannotPublishIntoItsCopyOfTheBuffer(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('pcntl is not there');
        }
        $publisher = Scheduler::await($this->connection->publisher(true, 10));
        $child = pcntl_fork();
        if ($child === 0) {
            $refused = false;
            try {
                $publisher->publish('', 'weft.native', 'lost', [], [], false, false, false);
            } catch (ForkedProcessError) {
                $refused = true;
            }
            posix_kill(getmypid(), $refused ? SIGUSR1 : SIGKILL);
        }
        pcntl_waitpid($child, $status);

        self::assertSame(SIGUSR1, pcntl_wtermsig($status));
    }
}
