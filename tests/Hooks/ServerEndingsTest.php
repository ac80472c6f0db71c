<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Hooks\Support\Redis;
use Weft\Tests\Runtime\Subprocess;

/** A process ends while libraries wait in its tasks: it neither crashes nor hangs, and clean-up code runs where PHP still runs code. */
final class ServerEndingsTest extends TestCase
{
    private const EXTENSIONS = ['sockets', 'pdo', 'mysqlnd', 'pgsql', 'pdo_pgsql', 'mysqli', 'pdo_mysql', 'curl', 'igbinary', 'redis'];

    /** Calls that wait for a minute and more. `$silent` is the address of a server that accepts and says nothing. */
    private const CALLS = [
        'sleep' => ['', 'sleep(120);'],
        'stream read' => ['', 'fread(stream_socket_client("tcp://$silent"), 1);'],
        'stream_select' => ['', '$read = [stream_socket_client("tcp://$silent")]; $none = []; stream_select($read, $none, $none, 120);'],
        'accept' => ['', 'stream_socket_accept(stream_socket_server("tcp://127.0.0.1:0"), 120);'],
        'URL' => ['', 'file_get_contents("http://$silent/");'],
        'pipe' => ['', '$process = proc_open(["cat"], [["pipe", "r"], ["pipe", "w"]], $pipes); fread($pipes[1], 1);'],
        'sockets' => ['sockets', '$socket = socket_create(AF_INET, SOCK_STREAM, SOL_TCP); socket_connect($socket, ...explode(":", $silent)); socket_recv($socket, $data, 1, 0);'],
        'curl' => ['curl', '$curl = curl_init("http://$silent/"); curl_exec($curl);'],
        'curl multi' => ['curl', '$multi = curl_multi_init(); $curl = curl_init("http://$silent/"); curl_multi_add_handle($multi, $curl); do { curl_multi_exec($multi, $active); curl_multi_select($multi, 120.0); } while ($active);'],
        'PDO pgsql' => ['pdo_pgsql', '$pdo = new PDO($pgsql, "weft", "weft"); $pdo->query("SELECT pg_sleep(120)");'],
        'PDO pgsql prepared' => ['pdo_pgsql', '$pdo = new PDO($pgsql, "weft", "weft"); $statement = $pdo->prepare("SELECT pg_sleep(?)"); $statement->execute([120]);'],
        'PDO pgsql connect' => ['pdo_pgsql', '[$host, $port] = explode(":", $silent); new PDO("pgsql:host=$host;port=$port", "weft", "weft");'],
        'pgsql' => ['pgsql', '$connection = pg_connect(strtr(substr($pgsql, 6), ";", " ") . " user=weft password=weft"); pg_query($connection, "SELECT pg_sleep(120)");'],
        'PDO mysql' => ['pdo_mysql', '$pdo = new PDO($mysql, "weft", "weft"); $pdo->query("SELECT SLEEP(120)");'],
        'PDO mysql connect' => ['pdo_mysql', '[$host, $port] = explode(":", $silent); new PDO("mysql:host=$host;port=$port", "weft", "weft");'],
        'mysqli' => ['mysqli', 'preg_match("/host=(.*);port=(.*);/", $mysql, $m); $mysqli = new mysqli($m[1], "weft", "weft", "weft", (int) $m[2]); $mysqli->query("SELECT SLEEP(120)");'],
        'phpredis' => ['redis', '$redis = new Redis(); $redis->connect("127.0.0.1", $redisPort); $redis->blPop(["nothing"], 120);'],
    ];

    /** How the process ends, its exit code and what it says. */
    private const ENDINGS = [
        'exit' => ['exit(3);', 3, '', true],
        'uncaught exception' => ['throw new RuntimeException("on purpose");', 255, 'Uncaught RuntimeException: on purpose', true],
        'fatal error' => ['ini_set("memory_limit", "32M"); $x = str_repeat("x", 64 << 20);', 255, 'Allowed memory size', false],
        'end of the loop' => ['return;', 0, '', true],
        'cancelled' => ['$task->cancel(); try { $task->await(); } catch (CancelledException) { echo "cancelled "; }', 0, '', true],
    ];

    private static ?Redis $redis = null;

    public static function setUpBeforeClass(): void
    {
        self::$redis = Redis::start();
    }

    public static function tearDownAfterClass(): void
    {
        self::$redis = null;
    }

    /** @return iterable<string, array{string, string}> */
    public static function cells(): iterable
    {
        foreach (self::CALLS as $call => $_) {
            foreach (self::ENDINGS as $ending => $_) {
                yield "$call: $ending" => [$call, $ending];
            }
        }
    }

    /** @dataProvider cells */
    public function testAProcessEndsWhileALibraryWaits(string $call, string $ending): void
    {
        [$extension, $code] = self::CALLS[$call];
        [$end, $exitCode, $message, $cleansUp] = self::ENDINGS[$ending];
        $extension === '' || \extension_loaded($extension) || self::markTestSkipped("ext-$extension is not loaded");
        $call !== 'phpredis' || self::$redis !== null || self::markTestSkipped('redis-server is not installed');

        $process = Subprocess::run($this->values() . <<<PHP
            run(function () use (\$silent, \$pgsql, \$mysql, \$redisPort) {
                \$task = detach(function () use (\$silent, \$pgsql, \$mysql, \$redisPort) {
                    try {
                        echo 'begins ';
                        $code
                        echo 'goes on ';
                    } finally {
                        echo 'cleans up ';
                    }
                });
                do {
                    delay(0.02);
                } while (Weft\Native\hookCounters()['pending'] === 0);
                delay(0.1);
                $end
            });
            PHP, extensions: self::EXTENSIONS);

        $said = "stdout: $process->output\nstderr: $process->errors";
        self::assertNull($process->signal, $said);
        self::assertSame($exitCode, $process->exitCode, $said);
        self::assertStringContainsString($message, $process->errors, $said);
        self::assertStringNotContainsString('goes on', $process->output, $said);
        self::assertStringNotContainsString('PDOException', $process->errors, $said);
        if ($cleansUp) {
            self::assertStringContainsString('begins cleans up', $process->output, $said);
        }
        if ($ending === 'cancelled') {
            self::assertStringContainsString('cancelled', $process->output, $said);
        }
        self::assertLessThan(60.0, $process->seconds);
    }

    private function values(): string
    {
        $dsn = static function (string $variable, string $driver): string {
            $url = \parse_url((string) \getenv($variable));

            return isset($url['host'], $url['port']) ? "$driver:host=$url[host];port=$url[port];dbname=weft" : self::fail("$variable is not set: `make services` starts the servers");
        };
        $values = [
            'pgsql' => $dsn('DATABASE_URL', 'pgsql'),
            'mysql' => $dsn('WEFT_MYSQL_DSN', 'mysql'),
            'redisPort' => self::$redis?->port,
        ];
        $code = '$silentServer = stream_socket_server("tcp://127.0.0.1:0"); $silent = stream_socket_get_name($silentServer, false);';
        foreach ($values as $name => $value) {
            $code .= "\$$name = " . \var_export($value, true) . ';';
        }

        return "$code\n";
    }
}
