<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Weft\Native;
use Weft\Runtime\Task;
use Weft\Tests\InTask;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\yieldNow;

/**
 * Streams and sockets of PHP suspend the task. Both ends are tasks of one process: if one of them blocked, the other could never answer, and
 * the test would hang.
 */
final class StreamsTest extends TestCase
{
    use InTask;

    protected function tearDown(): void
    {
        \array_map(unlink(...), \glob(\sys_get_temp_dir() . '/weft-streams-*') ?: []);
    }

    /** More than the kernel buffers. */
    private const LARGE = 16 << 20;

    /** @return iterable<string, array{string}> */
    public static function addresses(): iterable
    {
        yield 'TCP' => ['tcp://127.0.0.1:0'];
        yield 'Unix' => ['unix://' . \sys_get_temp_dir() . '/weft-streams-' . \bin2hex(\random_bytes(6))];
        yield 'TLS' => ['tls://127.0.0.1:0'];
    }

    /** @dataProvider addresses */
    #[DataProvider('addresses')]
    public function testClientsAndTheirServerTalkInOneProcess(string $address): void
    {
        [$server, $target, $context] = self::listen($address);
        $echo = async(static function () use ($server): void {
            for ($i = 0; $i < 10; $i++) {
                $connection = \stream_socket_accept($server, 60.0);
                async(static fn() => \stream_copy_to_stream($connection, $connection));
            }
        });

        $answers = all(\array_map(static fn(int $number): \Closure => static function () use ($number, $target, $context): string {
            $client = \stream_socket_client($target, $code, $message, 60.0, \STREAM_CLIENT_CONNECT, $context);
            self::assertIsResource($client, "$message");
            \fwrite($client, "hello $number\n");

            return (string) \fgets($client);
        }, \range(1, 10)));

        self::assertSame(\array_map(static fn(int $number): string => "hello $number\n", \range(1, 10)), $answers);
        $echo->await();
        \fclose($server);
    }

    /** @dataProvider addresses */
    #[DataProvider('addresses')]
    public function testAWriterWaitsForItsReader(string $address): void
    {
        [$server, $target, $context] = self::listen($address);
        $writer = async(static function () use ($server): int {
            $connection = \stream_socket_accept($server, 60.0);
            $written = \fwrite($connection, \str_repeat('x', self::LARGE));
            \fclose($connection);

            return (int) $written;
        });

        $client = \stream_socket_client($target, $code, $message, 60.0, \STREAM_CLIENT_CONNECT, $context);
        delay(0.01);

        self::assertSame(self::LARGE, \strlen((string) \stream_get_contents($client)));
        self::assertSame(self::LARGE, $writer->await());
    }

    public function testTheTimeoutOfAStreamEndsItsRead(): void
    {
        [$near, $far] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \stream_set_timeout($near, 0, 20_000);

        self::assertSame('', (string) \fread($near, 1));
        self::assertTrue(\stream_get_meta_data($near)['timed_out']);
        \fwrite($far, 'x');
        self::assertSame('x', \fread($near, 1));
    }

    public function testASelectEndsWithTheStreamThatIsReady(): void
    {
        $pairs = \array_map(static fn(): array => (array) \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0), \range(0, 2));
        $selected = async(static function () use ($pairs): array {
            $read = \array_column($pairs, 0);
            $write = $except = [];
            self::assertSame(1, \stream_select($read, $write, $except, 60));

            return $read;
        });
        yieldNow();
        \fwrite($pairs[1][1], 'x');

        self::assertSame([1 => $pairs[1][0]], $selected->await());
    }

    public function testDatagramsAreWaitedFor(): void
    {
        $server = \stream_socket_server('udp://127.0.0.1:0', $code, $message, \STREAM_SERVER_BIND);
        $received = async(static function () use ($server): string {
            $data = (string) \stream_socket_recvfrom($server, 100, 0, $peer);
            \stream_socket_sendto($server, "got $data", 0, $peer);

            return $data;
        });
        yieldNow();
        $client = \stream_socket_client('udp://' . \stream_socket_get_name($server, false));
        \fwrite($client, 'a datagram');

        self::assertSame('got a datagram', \fread($client, 100));
        self::assertSame('a datagram', $received->await());
    }

    /** @requires extension sockets */
    #[RequiresPhpExtension('sockets')]
    public function testBlockingSocketsOfExtSocketsSuspend(): void
    {
        $server = \socket_create(\AF_INET, \SOCK_STREAM, \SOL_TCP);
        \socket_bind($server, '127.0.0.1');
        \socket_listen($server);
        \socket_getsockname($server, $host, $port);
        $serving = async(static function () use ($server): string {
            $connection = \socket_accept($server);
            self::assertInstanceOf(\Socket::class, $connection);
            $line = (string) \socket_read($connection, 100, \PHP_NORMAL_READ);
            \socket_recv($connection, $rest, self::LARGE, \MSG_WAITALL);
            \socket_write($connection, \strlen($line . $rest) . "\n");

            return $line;
        });
        yieldNow();
        $client = \socket_create(\AF_INET, \SOCK_STREAM, \SOL_TCP);
        self::assertTrue(\socket_connect($client, $host, $port));
        self::assertSame(self::LARGE + 6, \socket_send($client, "hello\n" . \str_repeat('x', self::LARGE), self::LARGE + 6, 0));
        \socket_recv($client, $answer, 100, 0);

        self::assertSame(self::LARGE + 6 . "\n", $answer);
        self::assertSame("hello\n", $serving->await());
    }

    /** @requires extension sockets */
    #[RequiresPhpExtension('sockets')]
    public function testClientsWaitUntilTheQueueOfAUnixSocketHasRoom(): void
    {
        $path = \sys_get_temp_dir() . '/weft-streams-' . \bin2hex(\random_bytes(6));
        $server = \socket_create(\AF_UNIX, \SOCK_STREAM, 0);
        \socket_bind($server, $path);
        \socket_listen($server, 0);
        $connect = static function (?int $milliseconds) use ($path): bool {
            $client = \socket_create(\AF_UNIX, \SOCK_STREAM, 0);
            if ($milliseconds !== null) {
                \socket_set_option($client, \SOL_SOCKET, \SO_SNDTIMEO, ['sec' => 0, 'usec' => $milliseconds * 1_000]);
            }

            return @\socket_connect($client, $path);
        };
        $clients = \array_map(static fn() => async(static fn() => $connect(null)), \range(1, 5));
        yieldNow();

        self::assertFalse($connect(5));
        for ($i = 0; $i < 5; $i++) {
            \socket_accept($server);
        }
        self::assertSame(\array_fill(0, 5, true), \array_map(static fn($client) => $client->await(), $clients));
    }

    /** @requires extension sockets */
    #[RequiresPhpExtension('sockets')]
    public function testASocketsReceiveTimeoutEndsItsWait(): void
    {
        \socket_create_pair(\AF_UNIX, \SOCK_STREAM, 0, $pair);
        \socket_set_option($pair[0], \SOL_SOCKET, \SO_RCVTIMEO, ['sec' => 0, 'usec' => 20_000]);

        self::assertFalse(@\socket_recv($pair[0], $data, 1, 0));
        self::assertSame(\SOCKET_EAGAIN, \socket_last_error($pair[0]));
    }

    /** @requires extension sockets */
    #[RequiresPhpExtension('sockets')]
    public function testASocketThatDoesNotBlockIsNotWaitedFor(): void
    {
        \socket_create_pair(\AF_UNIX, \SOCK_STREAM, 0, $pair);
        \socket_set_nonblock($pair[0]);

        self::assertFalse(@\socket_recv($pair[0], $data, 1, 0));
        self::assertSame(\SOCKET_EAGAIN, \socket_last_error($pair[0]));
    }

    public function testPipesOfAProcessAreReadAndWrittenWithoutBlocking(): void
    {
        $process = \proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        $reader = async(static fn(): int => \strlen((string) \stream_get_contents($pipes[1])));
        yieldNow();
        self::assertSame(self::LARGE, \fwrite($pipes[0], \str_repeat('x', self::LARGE)));
        \fclose($pipes[0]);

        self::assertSame(self::LARGE, $reader->await());
        \proc_close($process);
    }

    public function testAnUrlIsReadFromAServerOfTheSameProcess(): void
    {
        [$server, $target] = self::listen('tcp://127.0.0.1:0');
        async(static function () use ($server): void {
            for ($i = 0; $i < 2; $i++) {
                $connection = \stream_socket_accept($server, 60.0);
                while (\rtrim((string) \fgets($connection)) !== '') {
                }
                \fwrite($connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
                \fclose($connection);
            }
        });
        $url = 'http' . \substr($target, 3);

        self::assertSame('ok', \file_get_contents($url));
        self::assertSame('ok', \stream_get_contents(\fopen($url, 'r') ?: self::fail()));
    }

    public function testTwoTasksThatWaitForOneDescriptorBothContinue(): void
    {
        [$near, $far] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        $ready = static function () use ($near): int {
            $read = [$near];
            $write = $except = [];

            return (int) \stream_select($read, $write, $except, 60);
        };
        $tasks = [async($ready), async($ready)];
        yieldNow();
        \fwrite($far, 'x');

        self::assertSame([1, 1], all($tasks));
    }

    /** `php://fd/N` duplicates a descriptor: both belong to one pipe, and a waiter of either may take what arrives. */
    public function testDuplicatesOfADescriptorAreWaitedForAndClosedApart(): void
    {
        $process = \proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        $duplicate = \fopen('php://fd/' . self::descriptor($pipes[1]), 'r');
        // Otherwise one may take both letters into its buffer.
        \stream_set_read_buffer($pipes[1], 0);
        \stream_set_read_buffer($duplicate, 0);
        $readers = [async(static fn() => \fread($pipes[1], 1)), async(static fn() => \fread($duplicate, 1))];
        delay(0.01);

        \fwrite($pipes[0], 'a');
        delay(0.01);
        \fwrite($pipes[0], 'b');
        $read = \array_map(static fn(Task $reader): string => $reader->await(), $readers);
        \sort($read);
        self::assertSame(['a', 'b'], $read);

        $reader = async(static fn() => \fread($duplicate, 1));
        delay(0.01);
        \fclose($pipes[1]);
        \fwrite($pipes[0], 'c');
        self::assertSame('c', $reader->await());

        \fclose($pipes[0]);
        \proc_close($process);
    }

    public function testADescriptorWhoseWaiterWasCancelledWakesTheNextOneThatHasItsNumber(): void
    {
        for ($i = 0; $i < 100; $i++) {
            [$near, $far] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
            $reader = async(static fn() => \fread($near, 1));
            delay(0.0);
            if ($i % 2 === 0) {
                $reader->cancel();
                delay(0.0);
                \fclose($near);
                [$near, $far] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
                $reader = async(static fn() => \fread($near, 1));
                delay(0.0);
            }
            \fwrite($far, (string) ($i % 10));

            self::assertSame((string) ($i % 10), $reader->await());
        }
    }

    /** @requires extension sockets */
    #[RequiresPhpExtension('sockets')]
    public function testAStreamAndTheSocketThatSharesItsDescriptorAreWaitedForByOneTaskEach(): void
    {
        [$near, $far] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        $socket = \socket_import_stream($near);
        \stream_set_read_buffer($near, 0);
        $readers = [async(static fn() => \fread($near, 1)), async(static fn() => \socket_read($socket, 1))];
        delay(0.01);

        \fwrite($far, 'a');
        delay(0.01);
        \fwrite($far, 'b');

        $read = \array_map(static fn(Task $reader): string => $reader->await(), $readers);
        \sort($read);
        self::assertSame(['a', 'b'], $read);
    }

    public function testADescriptorThatAnotherTaskClosesEndsTheWait(): void
    {
        [$near, $far] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        $ready = async(static function () use ($near): int|false {
            $read = [$near];
            $write = $except = [];

            return @\stream_select($read, $write, $except, 60);
        });
        yieldNow();
        \fclose($near);
        // The number of the descriptor has a new meaning before the task continues.
        [$near2, $far2] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \fwrite($far2, 'for the new one');

        self::assertFalse($ready->await());
        self::assertSame('for the new one', \fread($near2, 100));
    }

    public function testEachWaitRegistersItsSocketWithOneSystemCall(): void
    {
        $before = 0;
        $pairs = \array_map(static fn(): array => (array) \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0), \range(1, 400));
        $lines = 0;
        foreach ($pairs as $pair) {
            async(static function () use ($pair, &$lines): void {
                for ($round = 0; $round < 3; $round++) {
                    self::assertSame("$round\n", \fgets($pair[0]));
                    $lines++;
                }
            });
        }
        for ($round = 0; $round < 3; $round++) {
            while ($lines < 400 * $round || Native\hookCounters()['pending'] < 400) {
                delay(0.001);
            }
            // Numbers of descriptors that were used before cost a second call, once.
            $before = $round === 1 ? Native\hookCounters()['epoll_ctl'] : $before;
            foreach ($pairs as $pair) {
                \fwrite($pair[1], "$round\n");
            }
        }
        while ($lines < 1_200) {
            delay(0.001);
        }

        self::assertSame(400, Native\hookCounters()['epoll_ctl'] - $before);
        self::assertSame(0, Native\hookCounters()['pending']);
    }

    /** @return iterable<string, array{\Closure(resource): mixed}> calls that find something at once, or do not wait */
    public static function calls(): iterable
    {
        $select = static function ($stream, ?int $seconds): int|false {
            $read = [$stream];
            $none = [];

            return \stream_select($read, $none, $none, $seconds);
        };
        yield 'select that is ready' => [static fn($stream): mixed => $select($stream, 60)];
        yield 'select without waiting' => [static fn($stream): mixed => $select($stream, 0)];
        yield 'reads that find data' => [static function ($stream): mixed {
            \stream_set_read_buffer($stream, 0);

            return \fread($stream, 10);
        }];
        yield 'curl that does not wait' => [static function (): mixed {
            static $multi = null, $curl = null, $silent = null;
            if ($multi === null) {
                $silent = \stream_socket_server('tcp://127.0.0.1:0');
                $multi = \curl_multi_init();
                $curl = \curl_init('http://' . \stream_socket_get_name($silent, false));
                \curl_multi_add_handle($multi, $curl);
            }

            return \curl_multi_exec($multi, $active);
        }];
    }

    /**
     * @dataProvider calls
     * @requires extension curl
     *
     * @param \Closure(resource): mixed $call
     */
    #[DataProvider('calls')]
    #[RequiresPhpExtension('curl')]
    public function testATaskWhoseCallsNeverWaitLetsOthersRun(\Closure $call): void
    {
        [$near, $far] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \fwrite($far, \str_repeat('x', 100_000));
        $stop = false;
        async(static function () use (&$stop): void {
            $stop = true;
        });

        for ($i = 0; !$stop && $i < 1_000; $i++) {
            $call($near);
        }

        self::assertTrue($stop);
    }

    /** @return array{resource, string, resource} the server, the address for clients and their context */
    private static function listen(string $address): array
    {
        $context = \stream_context_create();
        if (\str_starts_with($address, 'tls')) {
            $context = \stream_context_create(['ssl' => ['local_cert' => self::certificate()]]);
        }
        $server = \stream_socket_server($address, $code, $message, \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN, $context);
        self::assertIsResource($server, "$message");
        $scheme = \substr($address, 0, (int) \strpos($address, ':'));
        $clients = \stream_context_create(['ssl' => ['verify_peer' => false, 'verify_peer_name' => false]]);

        return [$server, "$scheme://" . \stream_socket_get_name($server, false), $clients];
    }

    /** A file with a certificate and its key. */
    private static function certificate(): string
    {
        static $file = null;
        if ($file === null) {
            $key = \openssl_pkey_new(['private_key_type' => \OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1']);
            $request = \openssl_csr_new(['commonName' => 'localhost'], $key);
            $certificate = \openssl_csr_sign($request, null, $key, 1);
            \openssl_x509_export($certificate, $text);
            \openssl_pkey_export($key, $secret);
            $file = (string) \tempnam(\sys_get_temp_dir(), 'weft');
            \file_put_contents($file, $text . $secret);
            \register_shutdown_function(static fn() => \unlink($file));
        }

        return $file;
    }

    /** @param resource $pipe */
    private static function descriptor($pipe): int
    {
        $target = 'pipe:[' . \fstat($pipe)['ino'] . ']';
        foreach (\scandir('/proc/self/fd') as $number) {
            if (@\readlink("/proc/self/fd/$number") === $target) {
                return (int) $number;
            }
        }
        self::fail("$target is not open");
    }
}
