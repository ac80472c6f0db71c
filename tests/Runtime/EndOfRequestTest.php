<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Port;
use Weft\Tests\Extension;
use Weft\Tests\Protobuf\Generated\Everything\Everything;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

/** PHP runs code of the application after Weft has ended the request: what that code begins must not reach the next request of the process. */
final class EndOfRequestTest extends TestCase
{
    private string $script;
    private string $log;
    private string $address;

    /** @var resource */
    private $server;

    protected function setUp(): void
    {
        $this->script = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        $this->log = "$this->script.log";
        $this->address = '127.0.0.1:' . Port::free();
    }

    protected function tearDown(): void
    {
        \proc_terminate($this->server, \SIGKILL);
        \proc_close($this->server);
        @\unlink($this->log);
        \unlink($this->script);
    }

    public function testASaveHandlerThatPhpCallsLastUsesWeft(): void
    {
        $this->serve(<<<'PHP'
            final class Handler implements SessionHandlerInterface
            {
                public function open($path, $name): bool { return true; }
                public function close(): bool { return true; }
                public function read($id): string { return ''; }
                public function destroy($id): bool { return true; }
                public function gc($lifetime): int { return 0; }
                public function create_sid(): string { return 'x'; }
                public function validateId($id): bool { return true; }
                public function write($id, $data): bool
                {
                    $bytes = Codec::encode(new Everything());
                    run(static fn() => async(static fn() => usleep(1))->await());
                    note('wrote ' . strlen($bytes));

                    return true;
                }
            }
            session_set_save_handler(new Handler(), false);
            session_id('x');
            session_start();
            $_SESSION['a'] = 1;
            PHP . self::USE);
        $this->assertIsServedManyTimes();
        self::assertSame(\str_repeat("wrote 0\n", 12), \file_get_contents($this->log));
    }

    public function testAStreamThatPhpClosesLastIsRefused(): void
    {
        $this->serve(<<<'PHP'
            final class Closing
            {
                public $context;
                public function stream_open($path, $mode, $options, &$opened): bool { return true; }
                public function stream_close(): void
                {
                    $uses = [
                        static fn() => Codec::encode(new Everything()),
                        static fn() => run(static fn() => usleep(1)),
                        static fn() => Weft\Native\switchHooks(~0),
                        static fn() => Weft\Native\separateOutput(1),
                    ];
                    foreach ($uses as $use) {
                        try {
                            $use();
                            note('used');
                        } catch (Error $refused) {
                            note($refused->getMessage());
                        }
                    }
                }
            }
            stream_wrapper_register('closing', Closing::class);
            $stream = fopen('closing://a', 'r');
            PHP . self::USE);
        $this->assertIsServedManyTimes();
        $lines = \file($this->log, \FILE_IGNORE_NEW_LINES) ?: [];
        self::assertCount(48, $lines);
        foreach ($lines as $line) {
            self::assertStringContainsString('Weft was called after the request had ended', $line);
        }
    }

    /** Uses what the code at the end of the request before has used, in memory that other classes have filled meanwhile. */
    private const USE = <<<'PHP'

        if (isset($_GET['moved'])) {
            eval('final class Moved { ' . implode(' ', array_map(static fn(int $i): string => "function f$i(int \$a) { return \$a + $i; }", range(1, 3000))) . ' }');
        }
        $message = Codec::decode(Everything::class, '');
        run(static function (): void {
            $other = async(static fn() => usleep(2000));
            usleep(1000);
            $other->await();
        });
        echo $message->colour->name, ' ', $message->colour === (new Everything())->colour ? 'same' : 'other';
        PHP;

    private function assertIsServedManyTimes(): void
    {
        for ($i = 0; $i < 12; ++$i) {
            $answer = $this->get($i % 2 === 0 ? '/' : '/?moved');
            self::assertSame('UNSPECIFIED same', $answer, "request $i; " . (\proc_get_status($this->server)['running'] ? 'the server runs' : 'the server has died'));
        }
        // What the last request ends with runs after its answer.
        $this->get('/none');
    }

    private function serve(string $code): void
    {
        $head = '<?php use Weft\Protobuf\Codec; use ' . Everything::class . '; use function Weft\{async, run};'
            . ' require ' . \var_export(\dirname(__DIR__, 2) . '/autoload.php', true) . ';'
            . ' function note(string $line): void { file_put_contents(' . \var_export($this->log, true) . ', "$line\n", FILE_APPEND); }'
            . ' if ($_SERVER["REQUEST_URI"] === "/none") { exit; }';
        \file_put_contents($this->script, "$head\n$code");
        $settings = ['-d', 'extension=' . Extension::library(), '-d', 'session.use_cookies=0', '-d', 'session.cache_limiter='];
        $server = \proc_open([\PHP_BINARY, '-n', ...$settings, '-S', $this->address, $this->script], [1 => ['file', '/dev/null', 'w'], 2 => ['file', '/dev/null', 'w']], $pipes);
        self::assertIsResource($server);
        $this->server = $server;
        $deadline = \microtime(true) + Timing::DEADLINE;
        while ($this->get('/none') === null && \microtime(true) < $deadline) {
            \usleep(20_000);
        }
    }

    private function get(string $target): ?string
    {
        $answer = @\file_get_contents("http://$this->address$target", false, \stream_context_create(['http' => ['timeout' => Timing::DEADLINE, 'ignore_errors' => true]]));

        return $answer === false ? null : $answer;
    }
}
