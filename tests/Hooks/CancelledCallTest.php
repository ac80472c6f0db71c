<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TimeoutException;
use Weft\Tests\InTask;
use Weft\Tests\Runtime\Subprocess;

use function Weft\async;
use function Weft\delay;
use function Weft\timeout;
use function Weft\yieldNow;

/** A cancellation comes out of a library as what it is. The calls suspend in callbacks. */
final class CancelledCallTest extends TestCase
{
    use InTask;

    public function testAnExceptionOfPdoDoesNotHideTheTimeout(): void
    {
        $pdo = self::database(static function (): int {
            delay(60);

            return 1;
        });
        $finally = false;
        try {
            timeout(0.01, static function () use ($pdo, &$finally): void {
                try {
                    $pdo->query('SELECT callback()');
                } catch (\PDOException $wrapped) {
                    self::fail("$wrapped");
                } finally {
                    $finally = true;
                }
            });
            self::fail('no timeout');
        } catch (TimeoutException $timeout) {
            self::assertSame(0.01, $timeout->seconds);
        }

        self::assertTrue($finally);
        self::assertSame(3, (int) $pdo->query('SELECT 3')->fetchColumn());
    }

    public function testAnExceptionOfTheCallbackStaysTheException(): void
    {
        $pdo = self::database(static function (): never {
            try {
                delay(60);
            } catch (CancelledException $cancelled) {
                throw new \LogicException('mine', 0, $cancelled);
            }
        });
        $task = async(static function () use ($pdo): mixed {
            try {
                return $pdo->query('SELECT callback()');
            } catch (\Throwable $thrown) {
                return $thrown;
            }
        });
        yieldNow();
        $task->cancel();
        $thrown = $task->await();

        self::assertNotInstanceOf(CancelledException::class, $thrown);
        for ($cause = $thrown; $cause->getMessage() !== 'mine'; $cause = $cause->getPrevious());
        self::assertInstanceOf(\LogicException::class, $cause);
    }

    public function testAFailureOfTheLibraryThatIsNoCancellationStaysAsItIs(): void
    {
        $pdo = self::database(static function (): int {
            delay(0.001);

            return 1;
        });

        $this->expectException(\PDOException::class);
        $this->expectExceptionMessage('no such table: missing');
        $pdo->query('SELECT callback() FROM missing');
    }

    public function testATransferOfCurlThatIsCancelledEndsAndCanBeRepeated(): void
    {
        if (!extension_loaded('curl')) {
            self::markTestSkipped('needs the extension curl');
        }
        $seconds = 60;
        $curl = curl_init('file://' . __FILE__);
        curl_setopt($curl, CURLOPT_WRITEFUNCTION, static function (\CurlHandle $curl, string $data) use (&$seconds): int {
            delay($seconds);

            return strlen($data);
        });
        try {
            timeout(0.01, static fn(): mixed => curl_exec($curl));
            self::fail('no timeout');
        } catch (TimeoutException) {
        }
        $seconds = 0;

        self::assertTrue(curl_exec($curl));
    }

    /**
     * @dataProvider endsOfCallbacks
     *
     * @param \Closure(): mixed $callback
     * @param class-string<\Throwable> $thrown
     */
    #[DataProvider('endsOfCallbacks')]
    public function testATransferWhoseCallbackThrowsEndsBeforeTheServerEndsIt(\Closure $callback, string $thrown): void
    {
        if (!extension_loaded('curl')) {
            self::markTestSkipped('needs the extension curl');
        }
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        $server = async(static function () use ($listener): int {
            $connection = stream_socket_accept($listener, 60);
            fwrite($connection, "HTTP/1.0 200 OK\r\n\r\n");
            for ($sent = 0; $sent < 10_000 && @fwrite($connection, 'piece') !== false; $sent++) {
                delay(0.001);
            }

            return $sent;
        });
        $curl = curl_init('http://' . stream_socket_get_name($listener, false));
        $calls = 0;
        curl_setopt($curl, CURLOPT_WRITEFUNCTION, static function (\CurlHandle $curl, string $data) use ($callback, &$calls): int {
            $calls++;
            $callback();

            return strlen($data);
        });
        try {
            timeout(0.05, static fn(): mixed => curl_exec($curl));
            self::fail('no exception');
        } catch (TimeoutException | \LogicException $exception) {
            self::assertInstanceOf($thrown, $exception);
        }

        self::assertSame(1, $calls);
        self::assertNotSame(0, curl_errno($curl));
        self::assertLessThan(10_000, $server->await());
        curl_setopt_array($curl, [CURLOPT_URL => 'file://' . __FILE__, CURLOPT_WRITEFUNCTION => null, CURLOPT_RETURNTRANSFER => true]);
        self::assertSame(file_get_contents(__FILE__), curl_exec($curl));
    }

    /** @return iterable<string, array{\Closure(): mixed, class-string<\Throwable>}> */
    public static function endsOfCallbacks(): iterable
    {
        yield 'a cancellation' => [static fn() => delay(60), TimeoutException::class];
        yield 'an exception of its own' => [static fn() => throw new \LogicException('mine'), \LogicException::class];
    }

    public function testACancellationIsWhatAnIterationThrows(): void
    {
        $pdo = self::database(static function (int $seconds): int {
            delay($seconds);

            return $seconds;
        });
        $seen = [];
        try {
            timeout(0.01, static function () use ($pdo, &$seen): void {
                try {
                    foreach ($pdo->query('SELECT callback(0) UNION ALL SELECT callback(60)') as $row) {
                        $seen[] = (int) $row[0];
                    }
                    $seen[] = 'end';
                } catch (\PDOException $wrapped) {
                    self::fail("$wrapped");
                }
            });
            self::fail('no timeout');
        } catch (TimeoutException) {
        }

        self::assertSame([0], $seen);
        self::assertSame(3, (int) $pdo->query('SELECT 3')->fetchColumn());
    }

    /** @return iterable<string, array{string, string}> what it needs; a call that waits for the server at `$address`, which says nothing */
    public static function callsThatWarn(): iterable
    {
        yield 'XMLReader' => ['xmlreader', 'XMLReader::open("http://$address/");'];
        yield 'ext/exif' => ['exif', 'exif_read_data("http://$address/");'];
        yield 'unlink()' => ['standard', 'unlink("ftp://$address/file");'];
        yield 'SQLite3' => ['sqlite3', '
            $file = tempnam(sys_get_temp_dir(), "weft");
            $holder = new SQLite3($file);
            $database = new SQLite3($file);
            $database->busyTimeout(120_000);
            try { $holder->exec("BEGIN EXCLUSIVE"); $database->exec("BEGIN EXCLUSIVE"); } finally { unlink($file); }
        '];
    }

    /** @dataProvider callsThatWarn */
    #[DataProvider('callsThatWarn')]
    public function testAnInterruptedCallDoesNotWarn(string $extension, string $call): void
    {
        if (!extension_loaded($extension)) {
            self::markTestSkipped("needs the extension $extension");
        }
        $program = Subprocess::run(<<<PHP
            run(function () {
                \$server = stream_socket_server('tcp://127.0.0.1:0');
                \$address = stream_socket_get_name(\$server, false);
                async(fn() => delay(0.1));
                try { timeout(0.05, function () use (\$address) { $call }); } catch (Weft\Runtime\TimeoutException) { echo 'timed out'; }
            });
            PHP, extensions: ['standard' => [], 'xmlreader' => ['dom', 'xmlreader']][$extension] ?? [$extension]);

        self::assertSame('timed out', $program->output, $program->errors);
        self::assertSame('', $program->errors);
    }

    private static function database(\Closure $callback): \PDO
    {
        $pdo = new \PDO('sqlite::memory:');
        @$pdo->sqliteCreateFunction('callback', $callback);

        return $pdo;
    }
}
