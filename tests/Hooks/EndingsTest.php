<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Runtime\Subprocess;

/**
 * A task is suspended inside a call of a library while its process, or the task itself, ends: each kind of call, each ending.
 *
 * The program of a case does not go on before the report of tasks names the call, so these are tests of the names as well.
 */
final class EndingsTest extends TestCase
{
    /** What an extension needs to be loaded, where that is not PHP alone. */
    private const REQUIREMENTS = [
        'pdo_sqlite' => ['pdo'],
        'pdo_mysql' => ['mysqlnd', 'pdo'],
        'pdo_pgsql' => ['pdo'],
        'mysqli' => ['mysqlnd'],
        'redis' => ['igbinary'],
        'memcached' => ['igbinary', 'msgpack'],
    ];

    private const PROGRAM = <<<'PHP'
        register_shutdown_function(fn() => print("shutdown\n"));
        function pause(): int { delay(3600); return 0; }
        /** The port of a server that accepts connections and says nothing. */
        function silent(): int {
            static $server;
            $server ??= stream_socket_server('tcp://127.0.0.1:0');
            return (int) substr(strrchr(stream_socket_get_name($server, false), ':'), 1);
        }
        function dsn(string $variable): array { return parse_url(getenv($variable)); }
        function postgres(): PDO { $at = dsn('DATABASE_URL'); return new PDO("pgsql:host=$at[host];port=$at[port];dbname=weft", $at['user'], $at['pass']); }
        function mysql(): PDO { $at = dsn('WEFT_MYSQL_DSN'); return new PDO("mysql:host=$at[host];port=$at[port];dbname=weft", $at['user'], $at['pass']); }
        function waits(string $call): void {
            for ($end = hrtime(true) + 60e9; !in_array($call, array_map(fn($task) => $task->waitsFor, tasks()), true); delay(0.001)) {
                hrtime(true) < $end || die("The task does not wait for $call: " . implode(', ', tasks()) . "\n");
            }
        }
        function prepared(): Closure {
            $call = call();
            return static function () use ($call): void { try { $call(); } finally { echo "finally\n"; } };
        }

        PHP;

    /** What waits; a closure that calls it; the extension and the variable of the environment that it needs. */
    private const CALLS = [
        // Suspended in a callback.
        'Weft\delay() in PDO::query()' => ['$pdo = new PDO("sqlite::memory:"); @$pdo->sqliteCreateFunction("pause", fn() => pause()); return fn() => $pdo->query("SELECT pause()");', 'pdo_sqlite'],
        'Weft\delay() in PDOStatement::execute()' => ['$pdo = new PDO("sqlite::memory:", options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT]); @$pdo->sqliteCreateFunction("pause", fn() => pause()); return fn() => $pdo->prepare("SELECT pause()")->execute();', 'pdo_sqlite'],
        'Weft\delay() in PDOStatement::fetch()' => ['$pdo = new PDO("sqlite::memory:"); @$pdo->sqliteCreateFunction("pause", fn($n) => $n === 1 ? 1 : pause()); return function () use ($pdo) { $rows = $pdo->query("SELECT pause(1) UNION ALL SELECT pause(2)"); $rows->fetch(); $rows->fetch(); };', 'pdo_sqlite'],
        'Weft\delay() in curl_exec()' => ['$curl = curl_init("file://" . __FILE__); curl_setopt($curl, CURLOPT_WRITEFUNCTION, fn() => pause()); return fn() => curl_exec($curl);', 'curl'],
        'Weft\delay() in curl_multi_exec()' => ['$curl = curl_init("file://" . __FILE__); curl_setopt($curl, CURLOPT_WRITEFUNCTION, fn() => pause()); $multi = curl_multi_init(); curl_multi_add_handle($multi, $curl); return function () use ($multi, $curl) { do { curl_multi_exec($multi, $active); } while ($active); };', 'curl'],
        'Weft\delay() in fgets()' => ['class Slow { public $context; function stream_open() { return true; } function stream_read() { pause(); return "x\n"; } function stream_eof() { return false; } } stream_wrapper_register("slow", Slow::class); $slow = fopen("slow://", "r"); return fn() => fgets($slow);'],
        'Weft\delay() in file_get_contents()' => ['class Slow { public $context; function stream_open() { return true; } function stream_stat() { return []; } function stream_read() { pause(); return ""; } function stream_eof() { return true; } } stream_wrapper_register("slow", Slow::class); return fn() => file_get_contents("slow://");'],
        'Weft\delay() in SoapClient::__call()' => ['$client = new class (null, ["location" => "http://localhost/", "uri" => "urn:test"]) extends SoapClient { function __doRequest($request, $location, $action, $version, $oneWay = false, $uriParserClass = null): ?string { return (string) pause(); } }; return fn() => $client->number();', 'soap'],
        'Weft\delay() in DOMDocument::save()' => ['class Slow { public $context; function stream_open() { return true; } function stream_write(string $data) { pause(); return 0; } } stream_wrapper_register("slow", Slow::class); $document = new DOMDocument(); $document->loadXML("<a/>"); return fn() => $document->save("slow://");', 'dom'],
        'Weft\delay() in PDOStatement::execute() of a stream' => ['class Slow { public $context; function stream_open() { return true; } function stream_stat() { return []; } function stream_read() { pause(); return ""; } function stream_eof() { return true; } } stream_wrapper_register("slow", Slow::class); $stream = fopen("slow://", "r"); $statement = (new PDO("sqlite::memory:"))->prepare("SELECT ?"); $statement->bindParam(1, $stream, PDO::PARAM_LOB); return fn() => $statement->execute();', 'pdo_sqlite'],
        'Weft\delay() in session_start()' => ['final class Slow extends SessionHandler { function open(string $path, string $name): bool { pause(); return true; } } session_set_save_handler(new Slow(), false); return fn() => session_start(["use_cookies" => 0, "cache_limiter" => ""]);', 'session'],

        // Connecting, and waiting for an answer that does not come.
        'PDO::__construct() of pgsql' => ['return fn() => new PDO("pgsql:host=127.0.0.1;port=" . silent(), "a", "b");', 'pdo_pgsql'],
        'PDO::__construct() of mysql' => ['return fn() => new PDO("mysql:host=127.0.0.1;port=" . silent(), "a", "b");', 'pdo_mysql'],
        'pg_connect()' => ['return fn() => pg_connect("host=127.0.0.1 user=a port=" . silent());', 'pgsql'],
        'mysqli::__construct()' => ['return fn() => new mysqli("127.0.0.1", "a", "b", "c", silent());', 'mysqli'],
        'mysqli_connect()' => ['mysqli_report(MYSQLI_REPORT_OFF); return fn() => mysqli_connect("127.0.0.1", "a", "b", "c", silent());', 'mysqli'],
        'Redis::ping()' => ['$redis = new Redis; return function () use ($redis) { $redis->connect("127.0.0.1", silent()); $redis->ping(); };', 'redis'],
        'AMQPConnection::connect()' => ['$connection = new AMQPConnection(["host" => "127.0.0.1", "port" => silent()]); return fn() => $connection->connect();', 'amqp'],
        'Memcached::get()' => ['$cache = new Memcached; $cache->setOption(Memcached::OPT_POLL_TIMEOUT, 60000); $cache->addServer("127.0.0.1", silent()); return fn() => $cache->get("key");', 'memcached'],
        'ldap_bind()' => ['$directory = ldap_connect("ldap://127.0.0.1:" . silent()); return fn() => ldap_bind($directory);', 'ldap'],
        'ldap_search()' => ['$directory = ldap_connect("ldap://127.0.0.1:" . silent()); return fn() => ldap_search($directory, "dc=weft", "(cn=*)");', 'ldap'],
        'ftp_login()' => ['$server = stream_socket_server("tcp://127.0.0.1:0"); $port = (int) substr(strrchr(stream_socket_get_name($server, false), ":"), 1); return function () use ($server, $port) { async(function () use ($server) { fwrite($GLOBALS["kept"] = stream_socket_accept($server), "220 ready\r\n"); }); ftp_login(ftp_connect("127.0.0.1", $port), "a", "b"); };', 'ftp'],
        'curl_exec()' => ['$curl = curl_init("http://127.0.0.1:" . silent()); return fn() => curl_exec($curl);', 'curl'],
        'curl_multi_select()' => ['$curl = curl_init("http://127.0.0.1:" . silent()); $multi = curl_multi_init(); curl_multi_add_handle($multi, $curl); return function () use ($multi, $curl) { do { curl_multi_exec($multi, $active); curl_multi_select($multi, 60); } while ($active); };', 'curl'],
        'SoapClient::__call()' => ['$client = new SoapClient(null, ["location" => "http://127.0.0.1:" . silent(), "uri" => "urn:test"]); return fn() => $client->number();', 'soap'],
        'SoapClient::__construct()' => ['return fn() => new SoapClient("http://127.0.0.1:" . silent());', 'soap'],
        'file_get_contents()' => ['return fn() => file_get_contents("http://127.0.0.1:" . silent());'],
        'fopen()' => ['return fn() => fopen("http://127.0.0.1:" . silent(), "r");'],
        'stream_socket_client()' => ['return fn() => stream_socket_client("ssl://127.0.0.1:" . silent(), timeout: 60);', 'openssl'],
        'fgets()' => ['$stream = stream_socket_client("tcp://127.0.0.1:" . silent()); return fn() => fgets($stream);'],
        'stream_get_contents()' => ['$stream = stream_socket_client("tcp://127.0.0.1:" . silent()); return fn() => stream_get_contents($stream);'],
        'fwrite()' => ['$stream = stream_socket_client("tcp://127.0.0.1:" . silent()); return fn() => fwrite($stream, str_repeat("x", 10_000_000));'],
        'fread() of a pipe' => ['$process = proc_open(["cat"], [["pipe", "r"], ["pipe", "w"]], $pipes); return fn() => [fread($pipes[1], 1), $process];'],
        'stream_copy_to_stream()' => ['$stream = stream_socket_client("tcp://127.0.0.1:" . silent()); return fn() => stream_copy_to_stream($stream, fopen("php://memory", "r+"));'],
        'stream_select()' => ['$stream = stream_socket_client("tcp://127.0.0.1:" . silent()); return function () use ($stream) { $read = [$stream]; $none = null; stream_select($read, $none, $none, 3600); };'],
        'stream_socket_accept()' => ['$server = stream_socket_server("tcp://127.0.0.1:0"); return fn() => stream_socket_accept($server, 3600);'],
        'socket_read()' => ['$socket = socket_create(AF_INET, SOCK_STREAM, 0); socket_connect($socket, "127.0.0.1", silent()); return fn() => socket_read($socket, 10);', 'sockets'],
        'socket_recv()' => ['$socket = socket_create(AF_INET, SOCK_STREAM, 0); socket_connect($socket, "127.0.0.1", silent()); return function () use ($socket) { socket_recv($socket, $data, 1, 0); };', 'sockets'],
        'socket_accept()' => ['$socket = socket_create_listen(0); return fn() => socket_accept($socket);', 'sockets'],
        'sleep()' => ['return fn() => sleep(3600);'],
        'usleep()' => ['return fn() => usleep(3_600_000_000);'],
        'time_nanosleep()' => ['return fn() => time_nanosleep(3600, 0);'],

        // Between the statements of a session.
        'PDO::query() of pgsql' => ['$pdo = postgres(); return fn() => $pdo->query("SELECT pg_sleep(3600)");', 'pdo_pgsql', 'DATABASE_URL'],
        'PDO::exec() in a transaction of pgsql' => ['$pdo = postgres(); $pdo->beginTransaction(); return fn() => $pdo->exec("SELECT pg_sleep(3600)");', 'pdo_pgsql', 'DATABASE_URL'],
        'PDOStatement::execute() of pgsql' => ['$pdo = postgres(); $statement = $pdo->prepare("SELECT pg_sleep(?)"); return fn() => $statement->execute([3600]);', 'pdo_pgsql', 'DATABASE_URL'],
        'PDO::pgsqlCopyToArray()' => ['$pdo = postgres(); return fn() => @$pdo->pgsqlCopyToArray("(SELECT pg_sleep(3600)) ");', 'pdo_pgsql', 'DATABASE_URL'],
        'pg_query()' => ['$at = dsn("DATABASE_URL"); $c = pg_connect("host=$at[host] port=$at[port] dbname=weft user=$at[user] password=$at[pass]"); return fn() => pg_query($c, "SELECT pg_sleep(3600)");', 'pgsql', 'DATABASE_URL'],
        'PDO::query() of mysql' => ['$pdo = mysql(); return fn() => $pdo->query("SELECT SLEEP(3600)");', 'pdo_mysql', 'WEFT_MYSQL_DSN'],
        'PDOStatement::execute() of mysql' => ['$pdo = mysql(); $pdo->setAttribute(PDO::ATTR_EMULATE_PREPARES, false); $statement = $pdo->prepare("SELECT SLEEP(?)"); return fn() => $statement->execute([3600]);', 'pdo_mysql', 'WEFT_MYSQL_DSN'],
        'PDOStatement::fetch() of an unbuffered result of mysql' => ['$pdo = mysql(); $pdo->setAttribute(@PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false); $rows = $pdo->query("SELECT 1 AS n, REPEAT(\'x\', 100000) UNION ALL SELECT 2, SLEEP(3600)"); return function () use ($rows) { while ($rows->fetch()); };', 'pdo_mysql', 'WEFT_MYSQL_DSN'],
        'mysqli::query()' => ['$at = dsn("WEFT_MYSQL_DSN"); $c = new mysqli($at["host"], $at["user"], $at["pass"], "weft", $at["port"]); return fn() => $c->query("SELECT SLEEP(3600)");', 'mysqli', 'WEFT_MYSQL_DSN'],
        'mysqli_stmt_execute()' => ['$at = dsn("WEFT_MYSQL_DSN"); $c = new mysqli($at["host"], $at["user"], $at["pass"], "weft", $at["port"]); $s = $c->prepare("SELECT SLEEP(3600)"); return fn() => [$c->query("DO 1"), mysqli_stmt_execute($s)];', 'mysqli', 'WEFT_MYSQL_DSN'],
        'AMQPQueue::consume()' => ['$at = dsn("AMQP_URL"); $c = new AMQPConnection(["host" => $at["host"], "port" => $at["port"], "login" => $at["user"] ?? "guest", "password" => $at["pass"] ?? "guest"]); $c->connect(); $q = new AMQPQueue(new AMQPChannel($c)); $q->setFlags(AMQP_EXCLUSIVE); $q->declareQueue(); return fn() => $q->consume(fn() => true);', 'amqp', 'AMQP_URL'],
    ];

    /** PHP code, exit code, output and an error. */
    private const ENDINGS = [
        'the task is cancelled' => ['$task = async(prepared()); waits($call); $task->cancel(); try { $task->await(); } catch (CancelledException) { echo "cancelled\n"; }', 0, "finally\ncancelled\nshutdown\n"],
        'the task times out' => ['$wait = prepared(); async(function () use ($wait) { try { timeout(0.005, $wait); } catch (Weft\Runtime\TimeoutException) { echo "timed out\n"; } });', 0, "finally\ntimed out\nshutdown\n"],
        'another task fails' => ['async(prepared()); waits($call); throw new LogicException("mine");', 255, "finally\nshutdown\n", 'Uncaught LogicException: mine'],
        'exit()' => ['async(prepared()); waits($call); exit(3);', 3, "shutdown\nfinally\n"],
        'the event loop ends' => ['detach(prepared()); waits($call);', 0, "finally\nshutdown\n"],
        'a fatal error' => ['async(prepared()); waits($call); eval("function call() {}");', 255, "shutdown\n", 'Cannot redeclare '],
        'the memory limit' => ['async(prepared()); waits($call); ini_set("memory_limit", "16M"); str_repeat("x", 20_000_000);', 255, "shutdown\n", 'Allowed memory size'],
        'a fatal error in a shutdown function' => ['async(prepared()); waits($call); register_shutdown_function(function () { eval("function call() {}"); }); exit(3);', 255, "shutdown\n", 'Cannot redeclare '],
    ];

    /** @dataProvider matrix */
    #[DataProvider('matrix')]
    public function testAProcessEndsWhileACallIsSuspended(string $call, string $code, ?string $extension, ?string $server, string $ending, int $exitCode, string $output, string $error = ''): void
    {
        if ($extension !== null && !extension_loaded($extension)) {
            self::markTestSkipped("needs the extension $extension");
        }
        if ($server !== null && getenv($server) === false) {
            self::fail("$server is not set: `make services` starts the servers and writes it to var/services/env");
        }
        if (str_contains($ending, 'memory_limit') && getenv('USE_ZEND_ALLOC') === '0') {
            self::markTestSkipped('only the allocator of PHP knows the limit');
        }
        $name = var_export(explode(' ', $call)[0], true);
        $program = Subprocess::run(self::PROGRAM . <<<PHP
            function call(): Closure { $code }
            run(function () { \$call = $name; $ending });
            PHP, extensions: $extension === null ? [] : [...self::REQUIREMENTS[$extension] ?? [], $extension]);

        self::assertNull($program->signal, "signal $program->signal: $program->errors");
        self::assertSame($output, $program->output, $program->errors);
        self::assertSame($exitCode, $program->exitCode, $program->errors);
        if ($error === '') {
            self::assertSame('', $program->errors);
        } else {
            self::assertStringContainsString($error, $program->errors);
            self::assertSame(1, preg_match_all('{^(PHP )?[A-Z][a-z ]+: }m', $program->errors), $program->errors);
        }
    }

    /** @return iterable<string, array<int, mixed>> */
    public static function matrix(): iterable
    {
        foreach (self::CALLS as $call => $how) {
            foreach (self::ENDINGS as $name => $ending) {
                yield "$call: $name" => [$call, $how[0], $how[1] ?? null, $how[2] ?? null, ...$ending];
            }
        }
    }
}
