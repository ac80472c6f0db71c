<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TimeoutException;
use Weft\Tests\Hooks\Support\Redis;
use Weft\Tests\InTask;
use Weft\Tests\PdoMysql;
use Weft\Tests\Runtime\Subprocess;

use function Weft\async;
use function Weft\delay;
use function Weft\detach;
use function Weft\timeout;

/**
 * A task that is cancelled while a library waits continues at once, and the library's connection is broken or in step, never one answer behind.
 * Every wait here would take two minutes.
 */
final class CancellationTest extends TestCase
{
    use InTask;

    private static ?Redis $redis = null;

    public static function tearDownAfterClass(): void
    {
        self::$redis = null;
    }

    /** @return iterable<string, array{string, \Closure(): array{\Closure(): mixed, \Closure(): mixed}}> what it needs; connects and returns a wait and a request whose answer is 7 */
    public static function connections(): iterable
    {
        yield 'PDO pgsql' => ['pdo_pgsql', static function (): array {
            $pdo = self::pdo('DATABASE_URL', 'pgsql');

            return [static fn(): mixed => $pdo->query('SELECT pg_sleep(120)'), static fn(): mixed => $pdo->query('SELECT 7')->fetchColumn()];
        }];
        yield 'PDO pgsql, prepared' => ['pdo_pgsql', static function (): array {
            $pdo = self::pdo('DATABASE_URL', 'pgsql');
            $sleep = $pdo->prepare('SELECT pg_sleep(?)');

            return [static fn(): mixed => $sleep->execute([120]), static fn(): mixed => $pdo->query('SELECT 7')->fetchColumn()];
        }];
        yield 'pgsql' => ['pgsql', static function (): array {
            $url = self::server('DATABASE_URL');
            $connection = \pg_connect("host=$url[host] port=$url[port] dbname=weft user=$url[user] password=$url[pass]", \PGSQL_CONNECT_FORCE_NEW);

            return [static fn(): mixed => @\pg_query($connection, 'SELECT pg_sleep(120)'), static fn(): mixed => \pg_fetch_result(@\pg_query($connection, 'SELECT 7'), 0, 0)];
        }];
        yield 'PDO mysql' => ['pdo_mysql', static function (): array {
            $pdo = self::pdo('WEFT_MYSQL_DSN', 'mysql');

            return [static fn(): mixed => $pdo->query('SELECT SLEEP(120)'), static fn(): mixed => $pdo->query('SELECT 7')->fetchColumn()];
        }];
        yield 'mysqli' => ['mysqli', static function (): array {
            $connection = self::mysqli();

            return [static fn(): mixed => $connection->query('SELECT SLEEP(120)'), static fn(): mixed => $connection->query('SELECT 7')->fetch_row()[0]];
        }];
        yield 'mysqli, prepared' => ['mysqli', static function (): array {
            $connection = self::mysqli();
            $sleep = $connection->prepare('SELECT SLEEP(120)');
            $ask = $connection->prepare('SELECT 7');

            return [static fn(): mixed => $sleep->execute(), static function () use ($connection, $ask): mixed {
                $connection->real_query('DO 6');
                $ask->execute();

                return $ask->get_result()->fetch_row()[0];
            }];
        }];
        yield 'PDO mysql, an unbuffered result' => ['pdo_mysql', static function (): array {
            $pdo = self::pdo('WEFT_MYSQL_DSN', 'mysql');
            $pdo->setAttribute(PdoMysql::attribute('USE_BUFFERED_QUERY'), false);

            return [static function () use ($pdo): void {
                $rows = $pdo->query("SELECT 6, REPEAT('x', 100000) UNION ALL SELECT 6, SLEEP(120)");
                while ($rows->fetch() !== false) {
                }
            }, static fn(): mixed => $pdo->query('SELECT 7')->fetchColumn()];
        }];
        yield 'mysqli, an unbuffered result' => ['mysqli', static function (): array {
            $connection = self::mysqli();

            return [static function () use ($connection): void {
                $rows = $connection->query("SELECT 6, REPEAT('x', 100000) UNION ALL SELECT 6, SLEEP(120)", \MYSQLI_USE_RESULT);
                while ($rows->fetch_row() !== null) {
                }
            }, static fn(): mixed => $connection->query('SELECT 7')->fetch_row()[0]];
        }];
        // PHP 8.4 gave them to a class of the driver, PHP 8.5 warns of the old names.
        [$class, $copyTo, $copyFrom] = \PHP_VERSION_ID < 80400 ? [\PDO::class, 'pgsqlCopyToArray', 'pgsqlCopyFromArray'] : ['Pdo\Pgsql', 'copyToArray', 'copyFromArray'];
        yield 'PDO pgsql, a copy from the server' => ['pdo_pgsql', static function () use ($class, $copyTo): array {
            $pdo = self::pdo('DATABASE_URL', 'pgsql', $class);

            return [
                static fn(): mixed => $pdo->$copyTo('(SELECT 6 UNION ALL SELECT length(pg_sleep(120)::text)) '),
                static fn(): mixed => $pdo->query('SELECT 7')->fetchColumn(),
            ];
        }];
        yield 'PDO pgsql, a copy to the server' => ['pdo_pgsql', static function () use ($class, $copyFrom): array {
            $pdo = self::pdo('DATABASE_URL', 'pgsql', $class);
            $pdo->exec('CREATE TEMPORARY TABLE slow (n int CHECK (pg_sleep(n) IS NOT NULL))');

            return [static fn(): mixed => $pdo->$copyFrom('slow', ['120']), static fn(): mixed => $pdo->query('SELECT 7')->fetchColumn()];
        }];
        yield 'memcached' => ['memcached', static function (): array {
            $server = \stream_socket_server('tcp://127.0.0.1:0');
            $cache = new \Memcached();
            $cache->setOption(\Memcached::OPT_POLL_TIMEOUT, 120_000);
            [$host, $port] = \explode(':', (string) \stream_socket_get_name($server, false));
            $cache->addServer($host, (int) $port);
            $serve = static function () use ($server): void {
                while (true) {
                    $peer = \stream_socket_accept($server, 120);
                    async(static function () use ($peer): void {
                        // Each connection gets the answer to its first request late, and then one to each.
                        for ($first = true; ($line = \fgets($peer)) !== false; $first = false) {
                            $key = \explode(' ', \rtrim($line))[1] ?? '';
                            $first && $key === 'slow' && delay(0.2);
                            \fwrite($peer, $key === 'slow' ? "VALUE slow 0 1\r\n6\r\nEND\r\n" : "VALUE ask 0 1\r\n7\r\nEND\r\n");
                        }
                    });
                }
            };
            detach($serve);

            return [static fn(): mixed => $cache->get('slow'), static fn(): mixed => $cache->get('ask') ?: throw new \RuntimeException($cache->getResultMessage())];
        }];
        yield 'AMQP' => ['amqp', static function (): array {
            $url = self::server('AMQP_URL');
            $connection = new \AMQPConnection(['host' => $url['host'], 'port' => $url['port'], 'login' => $url['user'], 'password' => $url['pass']]);
            $connection->connect();
            $channel = new \AMQPChannel($connection);
            $queue = new \AMQPQueue($channel);
            $queue->setFlags(\AMQP_EXCLUSIVE);
            $queue->declareQueue();

            return [static fn(): mixed => $queue->consume(static fn(): bool => true), static function () use ($channel, $queue): mixed {
                (new \AMQPExchange($channel))->publish('7', $queue->getName());
                for ($message = $queue->get(\AMQP_AUTOACK); $message === false; $message = $queue->get(\AMQP_AUTOACK)) {
                }

                return $message->getBody();
            }];
        }];
        yield 'phpredis' => ['redis', static function (): array {
            self::$redis ??= Redis::start() ?? self::markTestSkipped('redis-server is not installed');
            $redis = new \Redis();
            $redis->connect('127.0.0.1', self::$redis->port);

            return [static fn(): mixed => $redis->blPop(['nothing'], 120), static fn(): mixed => $redis->echo('7')];
        }];
        yield 'TCP stream' => ['standard', static function (): array {
            $server = \stream_socket_server('tcp://127.0.0.1:0');
            $stream = \stream_socket_client('tcp://' . \stream_socket_get_name($server, false));
            $peer = \stream_socket_accept($server);

            return [static fn(): mixed => \fread($stream, 1), static function () use ($stream, $peer): mixed {
                // The answer to the request that was cancelled.
                @\fwrite($peer, "6\n");

                return \rtrim((string) \fgets($stream)) ?: throw new \RuntimeException('The stream has ended');
            }];
        }];
    }

    /**
     * @dataProvider connections
     *
     * @param \Closure(): array{\Closure(): mixed, \Closure(): mixed} $connect
     */
    #[DataProvider('connections')]
    public function testAConnectionIsBrokenOrInStepAfterItsWaitWasCancelled(string $extension, \Closure $connect): void
    {
        \extension_loaded($extension) || self::markTestSkipped("ext-$extension is not loaded");
        [$wait, $ask] = $connect();

        self::assertTimesOut($wait);
        for ($i = 0; $i < 3; $i++) {
            try {
                $answer = $ask();
            } catch (\Throwable) {
                continue;
            }
            self::assertSame('7', (string) $answer);
        }
    }

    /** @return iterable<string, array{string, \Closure(string): mixed}> what it needs, and a wait for a server at `host:port` that says nothing */
    public static function waits(): iterable
    {
        yield 'sleep' => ['standard', static fn(): mixed => \sleep(120)];
        yield 'usleep' => ['standard', static fn(): mixed => \usleep(120_000_000)];
        yield 'time_nanosleep' => ['standard', static fn(): mixed => \time_nanosleep(120, 0)];
        yield 'URL' => ['standard', static fn(string $silent): mixed => @\file_get_contents("http://$silent/")];
        yield 'TLS' => ['openssl', static fn(string $silent): mixed => @\stream_socket_client("tls://$silent", timeout: 120.0)];
        yield 'PDO pgsql connects' => ['pdo_pgsql', static fn(string $silent): mixed => new \PDO('pgsql:host=' . \strtr($silent, [':' => ';port=']), 'weft', 'weft')];
        yield 'PDO mysql connects' => ['pdo_mysql', static fn(string $silent): mixed => new \PDO('mysql:host=' . \strtr($silent, [':' => ';port=']), 'weft', 'weft')];
        yield 'curl' => ['curl', static fn(string $silent): mixed => \curl_exec(\curl_init("http://$silent/"))];
        yield 'ext/sockets' => ['sockets', static function (string $silent): mixed {
            $socket = \socket_create(\AF_INET, \SOCK_STREAM, \SOL_TCP);
            [$host, $port] = \explode(':', $silent);
            \socket_connect($socket, $host, (int) $port);

            return @\socket_read($socket, 1);
        }];
    }

    /**
     * @dataProvider waits
     *
     * @param \Closure(string): mixed $wait
     */
    #[DataProvider('waits')]
    public function testAWaitIsCancelled(string $extension, \Closure $wait): void
    {
        \extension_loaded($extension) || self::markTestSkipped("ext-$extension is not loaded");
        $server = \stream_socket_server('tcp://127.0.0.1:0');

        self::assertTimesOut(static fn(): mixed => $wait((string) \stream_socket_get_name($server, false)));
    }

    /** @return iterable<string, array{string, \Closure(): array{\Closure(): mixed, \Closure(): mixed}}> the connections to real servers */
    public static function serverConnections(): iterable
    {
        foreach (self::connections() as $name => $case) {
            \in_array($name, ['memcached', 'TCP stream'], true) || yield $name => $case;
        }
    }

    /**
     * @dataProvider serverConnections
     *
     * @param \Closure(): array{\Closure(): mixed, \Closure(): mixed} $connect
     */
    #[DataProvider('serverConnections')]
    public function testAPoolDoesNotLendAConnectionAgainWhoseWaitWasCancelled(string $extension, \Closure $connect): void
    {
        \extension_loaded($extension) || self::markTestSkipped("ext-$extension is not loaded");
        $pool = new Pool($connect, new PoolOptions(size: 1));
        $ask = static fn(): string => (string) $pool->with(static fn(array $connection): mixed => $connection[1]());
        self::assertSame('7', $ask());
        self::assertTimesOut(static fn(): mixed => $pool->with(static fn(array $connection): mixed => $connection[0]()));
        self::assertSame('7', $ask());
        // The holder catches the timeout itself.
        $pool->with(static function (array $connection): void {
            self::assertTimesOut($connection[0]);
        });
        self::assertSame('7', $ask());
        self::assertSame([3, 2], [$pool->stats()['created'], $pool->stats()['broken']]);
        $pool->close();
    }

    public function testATransactionThatWasCancelledIsNotCommitted(): void
    {
        foreach (['pgsql' => 'DATABASE_URL', 'mysql' => 'WEFT_MYSQL_DSN'] as $driver => $variable) {
            \extension_loaded("pdo_$driver") || self::markTestSkipped("ext-pdo_$driver is not loaded");
            $pdo = self::pdo($variable, $driver);
            $table = 'cancelled_' . \bin2hex(\random_bytes(4));
            $pdo->exec("CREATE TABLE $table (n INT)");
            $session = (int) $pdo->query($driver === 'pgsql' ? 'SELECT pg_backend_pid()' : 'SELECT CONNECTION_ID()')->fetchColumn();
            $pdo->beginTransaction();
            $pdo->exec("INSERT INTO $table VALUES (1)");
            self::assertTimesOut(static fn(): mixed => $pdo->exec($driver === 'pgsql' ? 'SELECT pg_sleep(120)' : 'SELECT SLEEP(120)'));
            $failure = null;
            try {
                $pdo->commit();
            } catch (\PDOException $failure) {
            }

            $other = self::pdo($variable, $driver);
            self::assertNotNull($failure, $driver);
            self::assertSame(0, (int) $other->query("SELECT COUNT(*) FROM $table")->fetchColumn(), $driver);
            // The server goes on sleeping, and holds its locks.
            $other->exec($driver === 'pgsql' ? "SELECT pg_terminate_backend($session)" : "KILL $session");
            $other->exec("DROP TABLE $table");
        }
    }

    public function testACurlHandleIsUsedAgainAfterItsTransferWasCancelled(): void
    {
        $silent = \stream_socket_server('tcp://127.0.0.1:0');
        $server = new Support\SlowServer(1);
        $curl = \curl_init();
        \curl_setopt($curl, \CURLOPT_RETURNTRANSFER, true);
        for ($i = 0; $i < 3; $i++) {
            \curl_setopt($curl, \CURLOPT_URL, 'http://' . \stream_socket_get_name($silent, false));
            self::assertTimesOut(static fn(): mixed => \curl_exec($curl));
            \curl_setopt($curl, \CURLOPT_URL, $server->url);
            self::assertSame('ok', \curl_exec($curl));
        }
        $server->close();
    }

    /**
     * Nothing accepts: connecting waits until the system gives up.
     *
     * @requires extension ldap
     * @requires extension sockets
     */
    #[RequiresPhpExtension('ldap')]
    #[RequiresPhpExtension('sockets')]
    public function testALibraryThatTriesItsNextServerAfterTheCancellationFailsAtOnce(): void
    {
        $program = Subprocess::run(<<<'PHP'
            /** A server whose queue of connections is full. */
            function busy(): string {
                static $sockets = [];
                $server = $sockets[] = socket_create(AF_INET, SOCK_STREAM, 0);
                socket_bind($server, '127.0.0.1', 0);
                socket_listen($server, 0);
                socket_getsockname($server, $address, $port);
                for ($i = 0; $i < 4; $i++) {
                    $client = $sockets[] = socket_create(AF_INET, SOCK_STREAM, 0);
                    socket_set_nonblock($client);
                    @socket_connect($client, '127.0.0.1', $port);
                }
                return "ldap://127.0.0.1:$port";
            }
            $servers = busy() . ' ' . busy();
            run(function () use ($servers) {
                $other = async(fn() => delay(3600));
                try { timeout(0.05, fn() => ldap_bind(ldap_connect($servers))); } catch (Weft\Runtime\TimeoutException) { echo 'timed out'; }
                $other->cancel();
            });
            PHP, extensions: ['sockets', 'ldap']);

        self::assertSame('timed out', $program->output, $program->errors);
    }

    public function testASelectThatIsCancelledLeavesItsStreamsUsable(): void
    {
        $server = \stream_socket_server('tcp://127.0.0.1:0');
        $stream = \stream_socket_client('tcp://' . \stream_socket_get_name($server, false));
        $peer = \stream_socket_accept($server);
        self::assertTimesOut(static function () use ($stream): mixed {
            $read = [$stream];
            $none = [];

            return @\stream_select($read, $none, $none, 120);
        });
        \fwrite($peer, 'still here');

        self::assertSame('still here', \fread($stream, 100));
    }

    public function testAServerThatIsCancelledWhileItAcceptsGoesOnListening(): void
    {
        $server = \stream_socket_server('tcp://127.0.0.1:0');
        self::assertTimesOut(static fn(): mixed => @\stream_socket_accept($server, 120.0));
        $client = \stream_socket_client('tcp://' . \stream_socket_get_name($server, false));

        self::assertIsResource($client);
        self::assertIsResource(\stream_socket_accept($server, 60.0));
    }

    public function testAnUnnamedPairStaysUsable(): void
    {
        [$near, $far] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        self::assertTimesOut(static fn(): mixed => \fread($near, 1));
        \fwrite($far, 'x');

        self::assertSame('x', \fread($near, 1));
    }

    public function testASocketThatAnotherTaskWaitsForIsNotShutDown(): void
    {
        $server = \stream_socket_server('tcp://127.0.0.1:0');
        $stream = \stream_socket_client('tcp://' . \stream_socket_get_name($server, false));
        $peer = \stream_socket_accept($server);
        $selected = async(static function () use ($stream): int|false {
            $read = [$stream];
            $none = [];

            return \stream_select($read, $none, $none, 120);
        });
        self::assertTimesOut(static fn(): mixed => \fread($stream, 1));
        \fwrite($peer, 'x');

        self::assertSame(1, $selected->await());
        self::assertSame('x', \fread($stream, 1));
    }

    public function testAWarningOfAnotherTaskIsNoExceptionOfTheLibraryThatWaits(): void
    {
        $server = \stream_socket_server('tcp://127.0.0.1:0');
        $silent = (string) \stream_socket_get_name($server, false);
        $connecting = detach(static fn(): \PDO => new \PDO('pgsql:host=' . \strtr($silent, [':' => ';port=']), 'weft', 'weft'));
        delay(0.05);

        $warnings = [];
        \set_error_handler(static function (int $level, string $message) use (&$warnings): bool {
            $warnings[] = $message;

            return true;
        });
        try {
            $none = [];
            self::assertNull($none['key']);
        } finally {
            \restore_error_handler();
        }

        self::assertSame(['Undefined array key "key"'], $warnings);
        $connecting->cancel();
        $this->expectException(CancelledException::class);
        $connecting->await();
    }

    private static function assertTimesOut(\Closure $wait): void
    {
        $cleaned = false;
        $begin = \hrtime(true);
        try {
            timeout(0.05, static function () use ($wait, &$cleaned): void {
                try {
                    $wait();
                } finally {
                    $cleaned = true;
                }
            });
            self::fail('It did not time out');
        } catch (TimeoutException) {
        }
        self::assertTrue($cleaned);
        self::assertLessThan(60.0, (\hrtime(true) - $begin) / 1e9);
    }

    /** @param class-string<\PDO> $class */
    private static function pdo(string $variable, string $driver, string $class = \PDO::class): \PDO
    {
        $url = self::server($variable);

        return new $class("$driver:host=$url[host];port=$url[port];dbname=weft", $url['user'], $url['pass']);
    }

    private static function mysqli(): \mysqli
    {
        $url = self::server('WEFT_MYSQL_DSN');

        return new \mysqli($url['host'], $url['user'], $url['pass'], 'weft', $url['port']);
    }

    /** @return array{host: string, port: int, user: string, pass: string} */
    private static function server(string $variable): array
    {
        $url = \parse_url((string) \getenv($variable));

        return isset($url['host'], $url['port'], $url['user'], $url['pass']) ? $url : self::fail("$variable is not set: `make services` starts the servers");
    }
}
