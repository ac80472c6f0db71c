<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Weft\Runtime\Task;
use Weft\Tests\Hooks\Support\Gathering;
use Weft\Tests\Hooks\Support\Redis;
use Weft\Tests\Hooks\Support\SlowServer;
use Weft\Tests\Http\ServerProcess;
use Weft\Tests\InTask;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\timeout;

/**
 * Unmodified clients wait side by side. Ten tasks wait for something that happens only when the server has seen all ten wait: a client that blocked
 * the process would keep the other nine from asking.
 */
final class ClientsTest extends TestCase
{
    use InTask;

    private const TASKS = 10;

    private static ?Redis $redis = null;

    public static function tearDownAfterClass(): void
    {
        self::$redis = null;
    }

    /** @return iterable<string, array{string, \Closure(string): string}> what it needs, and a request for a URL that returns the body */
    public static function httpClients(): iterable
    {
        yield 'streams' => ['', static fn(string $url): string => (string) \file_get_contents($url)];
        yield 'curl' => ['ext-curl', static function (string $url): string {
            $curl = \curl_init($url);
            \curl_setopt($curl, \CURLOPT_RETURNTRANSFER, true);

            return (string) \curl_exec($curl);
        }];
        yield 'curl, whose thread looks the name up' => ['ext-curl', static function (string $url): string {
            $curl = \curl_init(\strtr($url, ['127.0.0.1' => 'localhost']));
            \curl_setopt($curl, \CURLOPT_RETURNTRANSFER, true);

            return (string) \curl_exec($curl);
        }];
        yield 'curl, whose callback waits as well' => ['ext-curl', static function (string $url): string {
            $curl = \curl_init($url);
            $body = '';
            \curl_setopt($curl, \CURLOPT_WRITEFUNCTION, static function (\CurlHandle $curl, string $piece) use (&$body): int {
                \usleep(1_000);
                $body .= $piece;

                return \strlen($piece);
            });
            \curl_exec($curl);

            return $body;
        }];
        yield 'curl multi' => ['ext-curl', static function (string $url): string {
            $multi = \curl_multi_init();
            $curl = \curl_init($url);
            \curl_setopt($curl, \CURLOPT_RETURNTRANSFER, true);
            \curl_multi_add_handle($multi, $curl);
            do {
                \curl_multi_exec($multi, $active);
                \curl_multi_select($multi);
            } while ($active > 0);

            return (string) \curl_multi_getcontent($curl);
        }];
        yield 'Guzzle' => ['GuzzleHttp', static function (string $url): string {
            static $client = null;
            $client ??= new \GuzzleHttp\Client();

            return (string) $client->get($url)->getBody();
        }];
        yield 'Symfony HttpClient on curl' => ['Symfony/Component/HttpClient', static fn(string $url): string
            => (new \Symfony\Component\HttpClient\CurlHttpClient())->request('GET', $url)->getContent()];
        yield 'Symfony HttpClient on streams' => ['Symfony/Component/HttpClient', static fn(string $url): string
            => (new \Symfony\Component\HttpClient\NativeHttpClient())->request('GET', $url)->getContent()];
    }

    /**
     * @dataProvider httpClients
     *
     * @param \Closure(string): string $get
     */
    #[DataProvider('httpClients')]
    public function testHttpRequestsWaitSideBySide(string $needed, \Closure $get): void
    {
        self::need($needed);
        $server = new SlowServer(self::TASKS);

        self::assertSame(\array_fill(0, self::TASKS, 'ok'), self::together(static fn(): string => $get($server->url)));
        self::assertSame(self::TASKS, $server->most);
        $server->close();
    }

    /** @requires extension curl */
    #[RequiresPhpExtension('curl')]
    public function testStreamsOfHttp2WaitSideBySide(): void
    {
        $tasks = self::TASKS;
        $server = ServerProcess::start("\$waiting = 0; \$routes->get('/', function () use (&\$waiting) { for (\$waiting++; \$waiting < $tasks;) { delay(0.001); } return Response::text('ok'); });");
        $get = static function () use ($server): array {
            $curl = \curl_init("http://$server->address/");
            \curl_setopt_array($curl, [\CURLOPT_RETURNTRANSFER => true, \CURLOPT_HTTP_VERSION => \CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE]);

            return [\curl_exec($curl), \curl_getinfo($curl, \CURLINFO_HTTP_VERSION)];
        };

        self::assertSame(\array_fill(0, self::TASKS, ['ok', \CURL_HTTP_VERSION_2]), self::together($get));
        $server->stop();
    }

    /** @return iterable<string, array{int, bool}> how many tasks wait in curl_multi_select(), and whether another one goes on with the transfer before them */
    public static function sharers(): iterable
    {
        yield 'of which each has seen the answer' => [3, false];
        yield 'of which none has seen it' => [3, true];
    }

    /**
     * Clients such as Symfony's and Guzzle's keep one multi handle for all requests. A task that goes on with it takes the answers of others as well.
     *
     * @dataProvider sharers
     * @requires extension curl
     */
    #[DataProvider('sharers')]
    #[RequiresPhpExtension('curl')]
    public function testTasksThatShareTheTransfersOfCurlContinueWhenAnotherOneHasTakenTheAnswer(int $count, bool $isTaken): void
    {
        $server = \stream_socket_server('tcp://127.0.0.1:0');
        $multi = \curl_multi_init();
        $curl = \curl_init('http://' . \stream_socket_get_name($server, false));
        \curl_setopt_array($curl, [\CURLOPT_RETURNTRANSFER => true, \CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS => 1]);
        \curl_multi_add_handle($multi, $curl);
        $transfer = static function () use ($multi): void {
            do {
                \curl_multi_exec($multi, $active);
            } while ($active && \curl_multi_select($multi, 3600) >= 0);
        };
        $tasks = \array_map(static fn() => async($transfer), \range(1, $count));
        $connection = \stream_socket_accept($server, 60);
        while (\rtrim((string) \fgets($connection)) !== '');
        // Timers of libcurl, which end waits early, go off before the answer.
        delay(0.05);

        \fwrite($connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        for ($active = $isTaken; $active;) {
            \curl_multi_exec($multi, $active);
        }

        timeout(60, static fn() => \array_map(static fn(Task $task) => $task->await(), $tasks));
        self::assertSame('ok', \curl_multi_getcontent($curl));
    }

    /** @requires extension curl */
    #[RequiresPhpExtension('curl')]
    public function testTransfersThatShareConnectionsAndCookiesGetTheirOwnAnswersAlsoWhereOthersAreCancelled(): void
    {
        $server = ServerProcess::start("\$routes->get('/{number}', function (Request \$r) { delay(0.05); return Response::text(\$r->path())->withHeader('set-cookie', 'seen=1'); });");
        $share = \curl_share_init();
        foreach ([\CURL_LOCK_DATA_COOKIE, \CURL_LOCK_DATA_DNS, \CURL_LOCK_DATA_SSL_SESSION, \CURL_LOCK_DATA_CONNECT] as $shared) {
            \curl_share_setopt($share, \CURLSHOPT_SHARE, $shared);
        }
        $get = static function (int $number) use ($server, $share): string {
            $curl = \curl_init("http://$server->address/$number");
            \curl_setopt_array($curl, [\CURLOPT_RETURNTRANSFER => true, \CURLOPT_SHARE => $share]);

            return (string) \curl_exec($curl);
        };

        // The second and third round have connections of the ones before.
        for ($number = 0; $number < 3 * self::TASKS;) {
            $tasks = [];
            for ($i = 0; $i < self::TASKS; $i++, $number++) {
                $tasks[$number] = async(static fn() => $get($number));
            }
            delay(0.02);
            foreach ($tasks as $asked => $task) {
                if ($asked % 3 === 0) {
                    $task->cancel();
                } else {
                    self::assertSame("/$asked", $task->await());
                }
            }
        }
        $server->stop();
    }

    /** @requires extension soap */
    #[RequiresPhpExtension('soap')]
    public function testCallsOfSoapWaitSideBySide(): void
    {
        $envelope = '<E:Envelope xmlns:E="http://schemas.xmlsoap.org/soap/envelope/" xmlns:t="urn:test"><E:Body><t:answer><return>ok</return></t:answer></E:Body></E:Envelope>';
        $server = new SlowServer(self::TASKS, $envelope, 'text/xml');

        $answers = self::together(static fn(): mixed => (new \SoapClient(null, ['location' => $server->url, 'uri' => 'urn:test']))->__soapCall('ask', ['something']));

        self::assertSame(\array_fill(0, self::TASKS, 'ok'), $answers);
        $server->close();
    }

    /** @requires extension memcached */
    #[RequiresPhpExtension('memcached')]
    public function testCommandsOfMemcachedWaitSideBySide(): void
    {
        $gathering = new Gathering(self::TASKS);
        $server = \stream_socket_server('tcp://127.0.0.1:0');
        $port = (int) \substr((string) \strrchr((string) \stream_socket_get_name($server, false), ':'), 1);
        $serving = async(static function () use ($server, $gathering): void {
            while (($connection = \stream_socket_accept($server, 86_400.0)) !== false) {
                async(static function () use ($connection, $gathering): void {
                    while (($line = \fgets($connection)) !== false) {
                        if (\str_starts_with($line, 'get ')) {
                            $gathering->wait();
                            \fwrite($connection, "VALUE key 0 2\r\nok\r\nEND\r\n");
                        }
                    }
                });
            }
        });

        $values = self::together(static function () use ($port): mixed {
            $cache = new \Memcached();
            $cache->setOption(\Memcached::OPT_POLL_TIMEOUT, 60_000);
            $cache->addServer('127.0.0.1', $port);

            return $cache->get('key');
        });

        self::assertSame(\array_fill(0, self::TASKS, 'ok'), $values);
        $serving->cancel();
    }

    /** @return iterable<string, array{string, \Closure(): (\Closure(string): mixed)}> what it needs; connects and returns a query for one value */
    public static function postgresClients(): iterable
    {
        $pdo = static function (): \PDO {
            $url = self::server('DATABASE_URL');

            return new \PDO("pgsql:host=$url[host];port=$url[port];dbname=weft", $url['user'], $url['pass']);
        };
        yield 'PDO query' => ['ext-pdo_pgsql', static function () use ($pdo): \Closure {
            $pdo = $pdo();

            return static fn(string $sql): mixed => $pdo->query($sql)->fetchColumn();
        }];
        yield 'PDO prepared' => ['ext-pdo_pgsql', static function () use ($pdo): \Closure {
            $pdo = $pdo();

            return static function (string $sql) use ($pdo): mixed {
                $statement = $pdo->prepare($sql);
                $statement->execute();

                return $statement->fetchColumn();
            };
        }];
        yield 'pgsql' => ['ext-pgsql', static function (): \Closure {
            $url = self::server('DATABASE_URL');
            $connection = \pg_connect("host=$url[host] port=$url[port] dbname=weft user=$url[user] password=$url[pass]", \PGSQL_CONNECT_FORCE_NEW);

            return static fn(string $sql): mixed => \pg_fetch_result(\pg_query_params($connection, $sql, []), 0, 0);
        }];
        yield 'Doctrine DBAL' => ['Doctrine/DBAL', static function (): \Closure {
            $url = self::server('DATABASE_URL');
            $connection = \Doctrine\DBAL\DriverManager::getConnection(['driver' => 'pdo_pgsql', 'host' => $url['host'], 'port' => $url['port'], 'dbname' => 'weft', 'user' => $url['user'], 'password' => $url['pass']]);

            return static fn(string $sql): mixed => $connection->fetchOne($sql);
        }];
    }

    /**
     * @dataProvider postgresClients
     *
     * @param \Closure(): (\Closure(string): mixed) $connect
     */
    #[DataProvider('postgresClients')]
    public function testQueriesOfPostgresWaitSideBySide(string $needed, \Closure $connect): void
    {
        self::need($needed);
        $lock = \random_int(1, \PHP_INT_MAX);
        $holder = $connect();
        $holder("SELECT pg_advisory_lock($lock)");

        $values = self::together(
            static fn(): mixed => $connect()("SELECT 7 FROM (SELECT pg_advisory_lock_shared($lock)) AS locked"),
            static fn(): bool => (int) $holder("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND (classid::bigint << 32 | objid::bigint) = $lock") === self::TASKS,
            static fn(): mixed => $holder("SELECT pg_advisory_unlock($lock)"),
        );

        self::assertSame(\array_fill(0, self::TASKS, '7'), \array_map(strval(...), $values));
    }

    /** @return iterable<string, array{string, \Closure(): (\Closure(string): mixed)}> as above */
    public static function mysqlClients(): iterable
    {
        $pdo = static function (): \PDO {
            $url = self::server('WEFT_MYSQL_DSN');

            return new \PDO("mysql:host=$url[host];port=$url[port];dbname=weft", $url['user'], $url['pass']);
        };
        yield 'PDO query' => ['ext-pdo_mysql', static function () use ($pdo): \Closure {
            $pdo = $pdo();

            return static fn(string $sql): mixed => $pdo->query($sql)->fetchColumn();
        }];
        yield 'PDO prepared by the server' => ['ext-pdo_mysql', static function () use ($pdo): \Closure {
            $pdo = $pdo();
            $pdo->setAttribute(\PDO::ATTR_EMULATE_PREPARES, false);

            return static function (string $sql) use ($pdo): mixed {
                $statement = $pdo->prepare($sql);
                $statement->execute();

                return $statement->fetchColumn();
            };
        }];
        yield 'mysqli' => ['ext-mysqli', static function (): \Closure {
            $url = self::server('WEFT_MYSQL_DSN');
            $connection = new \mysqli($url['host'], $url['user'], $url['pass'], 'weft', $url['port']);

            return static fn(string $sql): mixed => $connection->query($sql)->fetch_row()[0];
        }];
        yield 'Doctrine DBAL' => ['Doctrine/DBAL', static function (): \Closure {
            $url = self::server('WEFT_MYSQL_DSN');
            $connection = \Doctrine\DBAL\DriverManager::getConnection(['driver' => 'pdo_mysql', 'host' => $url['host'], 'port' => $url['port'], 'dbname' => 'weft', 'user' => $url['user'], 'password' => $url['pass']]);

            return static fn(string $sql): mixed => $connection->fetchOne($sql);
        }];
    }

    /**
     * @dataProvider mysqlClients
     *
     * @param \Closure(): (\Closure(string): mixed) $connect
     */
    #[DataProvider('mysqlClients')]
    public function testQueriesOfMysqlWaitSideBySide(string $needed, \Closure $connect): void
    {
        self::need($needed);
        $lock = 'weft-' . \bin2hex(\random_bytes(6));
        $holder = $connect();
        $holder("SELECT GET_LOCK('$lock', 60)");

        $values = self::together(
            static fn(): mixed => $connect()("SELECT GET_LOCK('$lock', 60) + 6 * RELEASE_LOCK('$lock')"),
            static fn(): bool => (int) $holder("SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%+ 6 * RELEASE_LOCK(''$lock'')%' AND id <> connection_id()") === self::TASKS,
            static fn(): mixed => $holder("SELECT RELEASE_LOCK('$lock')"),
        );

        self::assertSame(\array_fill(0, self::TASKS, '7'), \array_map(strval(...), $values));
    }

    /** @return iterable<string, array{string, \Closure(int): (\Closure(string): mixed)}> what it needs; connects to a port and returns a pop */
    public static function redisClients(): iterable
    {
        yield 'phpredis' => ['ext-redis', static function (int $port): \Closure {
            $redis = new \Redis();
            $redis->connect('127.0.0.1', $port);

            return static fn(string $list): mixed => $redis->blPop([$list], 0)[1];
        }];
        yield 'Predis' => ['Predis', static function (int $port): \Closure {
            $redis = new \Predis\Client(['host' => '127.0.0.1', 'port' => $port, 'read_write_timeout' => -1]);

            return static fn(string $list): mixed => $redis->blpop([$list], 0)[1];
        }];
    }

    /**
     * @dataProvider redisClients
     *
     * @param \Closure(int): (\Closure(string): mixed) $connect
     */
    #[DataProvider('redisClients')]
    public function testCommandsOfRedisWaitSideBySide(string $needed, \Closure $connect): void
    {
        self::need($needed);
        $redis = self::$redis ??= Redis::start();
        if ($redis === null) {
            self::markTestSkipped('redis-server is not installed');
        }
        $list = \bin2hex(\random_bytes(6));

        $values = self::together(
            static fn(): mixed => $connect($redis->port)($list),
            static fn(): bool => \str_contains($redis->command('INFO clients'), 'blocked_clients:' . self::TASKS),
            static fn(): string => $redis->command("RPUSH $list " . \implode(' ', \array_fill(0, self::TASKS, 'ok'))),
        );

        self::assertSame(\array_fill(0, self::TASKS, 'ok'), $values);
    }

    /** @return iterable<string, array{string, \Closure(string, string): string}> what it needs; takes one message of a queue */
    public static function amqpClients(): iterable
    {
        yield 'ext-amqp' => ['ext-amqp', static function (string $queue): string {
            $url = self::server('AMQP_URL');
            $connection = new \AMQPConnection(['host' => $url['host'], 'port' => $url['port'], 'login' => $url['user'], 'password' => $url['pass'], 'read_timeout' => 60]);
            $connection->connect();
            $channel = new \AMQPChannel($connection);
            $channel->setPrefetchCount(1);
            $from = new \AMQPQueue($channel);
            $from->setName($queue);
            $body = '';
            $from->consume(static function (\AMQPEnvelope $message, \AMQPQueue $from) use (&$body): bool {
                $body = $message->getBody();
                $from->ack($message->getDeliveryTag());

                return false;
            });
            $connection->disconnect();

            return $body;
        }];
        yield 'php-amqplib' => ['PhpAmqpLib', static function (string $queue): string {
            $url = self::server('AMQP_URL');
            $connection = new \PhpAmqpLib\Connection\AMQPStreamConnection($url['host'], (string) $url['port'], $url['user'], $url['pass']);
            $channel = $connection->channel();
            $channel->basic_qos(0, 1, false);
            $body = '';
            $channel->basic_consume($queue, callback: static function ($message) use (&$body): void {
                $body = $message->body;
                $message->ack();
                $message->getChannel()->basic_cancel($message->getConsumerTag());
            });
            while ($channel->is_consuming()) {
                $channel->wait();
            }
            $connection->close();

            return $body;
        }];
    }

    /**
     * @dataProvider amqpClients
     *
     * @param \Closure(string): string $take
     */
    #[DataProvider('amqpClients')]
    public function testConsumersOfRabbitMqWaitSideBySide(string $needed, \Closure $take): void
    {
        self::need($needed);
        self::server('AMQP_URL');
        $connection = \Weft\Amqp\Connection::connect((string) \getenv('AMQP_URL'));
        $queue = 'weft-' . \bin2hex(\random_bytes(6));
        $connection->declare(new \Weft\Amqp\Queue($queue));
        try {
            $values = self::together(
                static fn(): string => $take($queue),
                static fn(): bool => $connection->queueState($queue)->consumers === self::TASKS,
                static function () use ($connection, $queue): void {
                    $connection->publisher()->publishAll(\array_fill(0, self::TASKS, new \Weft\Amqp\Message('ok')), routingKey: $queue);
                },
            );
        } finally {
            $connection->deleteQueue($queue);
            $connection->close();
        }

        self::assertSame(\array_fill(0, self::TASKS, 'ok'), $values);
    }

    /**
     * Runs `$wait` in ten tasks, and `$release` once `$areWaiting`.
     *
     * @return list<mixed> what they return
     */
    private static function together(\Closure $wait, ?\Closure $areWaiting = null, ?\Closure $release = null): array
    {
        if ($areWaiting !== null && $release !== null) {
            async(static function () use ($areWaiting, $release): void {
                while (!$areWaiting()) {
                    delay(0.01);
                }
                $release();
            });
        }

        return \array_values(all(\array_fill(0, self::TASKS, $wait)));
    }

    private static function need(string $needed): void
    {
        if (\str_starts_with($needed, 'ext-')) {
            \extension_loaded(\substr($needed, 4)) || self::markTestSkipped("$needed is not loaded");
        } elseif ($needed !== '') {
            \is_file("/usr/share/php/$needed/autoload.php") ? require_once "/usr/share/php/$needed/autoload.php" : self::markTestSkipped("$needed is not installed");
        }
    }

    /** @return array{host: string, port: int, user: string, pass: string} */
    private static function server(string $variable): array
    {
        $url = \parse_url((string) \getenv($variable));
        if (!isset($url['host'], $url['port'], $url['user'], $url['pass'])) {
            self::fail("$variable is not set: `make services` starts the servers and writes it to var/services/env");
        }

        return $url;
    }
}
