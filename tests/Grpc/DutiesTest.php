<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use Weft\Grpc\Status;
use Weft\Tests\Http\Certificates;
use Weft\Tests\Timing;

/** What a server owes to those who operate it: an orderly end, certificates, deadlines that reach the database, metrics. */
final class DutiesTest extends GrpcTestCase
{
    private const WATCH = '/grpc.health.v1.Health/Watch';
    private const SERVING = "\x08\x01";
    private const NOT_SERVING = "\x08\x02";

    public function testWhileTheServerDrainsItIsNotServingAndWhatIsInFlightIsAnswered(): void
    {
        $server = $this->serve('"get" => static function () { say("working"); gate("get"); return new User(5); }');
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::WATCH) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));
        self::assertSame(self::frame(self::SERVING), $wire->await(Wire::DATA)[2]);
        $wire->send(Wire::call(3, self::GET) . Wire::frame(Wire::DATA, Wire::END_STREAM, 3, self::USER_228));
        self::assertTrue($server->awaitLog('working'));

        $server->signal();

        self::assertSame([1, self::frame(self::NOT_SERVING)], \array_slice($wire->await(Wire::DATA) ?? [], 1));
        $server->open('get');
        self::assertSame([3, self::frame("\x08\x05")], \array_slice($wire->await(Wire::DATA) ?? [], 1));
        self::assertSame([0, "ended\n"], $server->stop());
    }

    public function testHealthOfAServiceIsWatched(): void
    {
        $server = $this->serve('"get" => static function () { global $grpc; $grpc->health()->set("api.Users", false); return new User(); }');
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::WATCH) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::frame("\x0a\x09api.Users")));
        self::assertSame(self::frame(self::SERVING), $wire->await(Wire::DATA)[2]);

        $server->post(self::GET, self::USER_228);

        self::assertSame(self::frame(self::NOT_SERVING), $wire->await(Wire::DATA)[2]);
        self::assertSame(["\x08\x02"], $server->post('/grpc.health.v1.Health/Check', self::frame("\x0a\x09api.Users"))->messages());
    }

    public function testFourConnectionsFullOfWatchesLeaveTheServerToTheOthers(): void
    {
        $server = $this->serve(more: '$app->metrics("127.0.0.1:0");');
        $wires = [];
        for ($connection = 0; $connection < 4; $connection++) {
            $wires[] = $wire = new Wire($server->connect());
            for ($stream = 1; $stream < 2 * 256; $stream += 2) {
                $wire->send(Wire::call($stream, self::WATCH) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, self::EMPTY_MESSAGE));
            }
            // The ones that are refused end their streams; the others have an answer.
            self::assertSame(self::frame(self::SERVING), $wire->await(Wire::DATA)[2]);
        }

        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
        self::assertSame(["\x08\x01"], $server->post('/grpc.health.v1.Health/Check', self::EMPTY_MESSAGE)->messages());
        self::assertTrue($server->awaitLog('gRPC calls refused (watch_limit): '));
        self::assertSame(1, preg_match('~http://\S+/metrics~', $server->log(), $address), $server->log());
        // Ten watches a connection are open.
        $refused = 'weft_grpc_refused_total{reason="watch_limit"} ' . 4 * 246 . "\n";
        Timing::until(static fn(): bool => str_contains((string) file_get_contents($address[0]), $refused), $refused);
    }

    /** The extension admits calls as soon as it listens; how many fibers there are for them is known when the server runs. */
    public function testWatchesThatCameBeforeTheServerRanAreServedOrRefused(): void
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft-grpc');
        file_put_contents($program, '<?php
            require ' . var_export(\dirname(__DIR__, 2) . '/autoload.php', true) . ';
            ' . GrpcProcess::GATE . '
            Weft\run(static function (): void {
                $server = new Weft\Grpc\Server([]);
                echo $server->listen("127.0.0.1:0"), "\n";
                gate("run");
                Weft\async($server->run(...));
                gate("stop");
                $server->stop();
            }, maxFibers: 40);');
        $server = GrpcProcess::launch([$program], $program);
        $wires = [new Wire($server->connect()), new Wire($server->connect())];
        foreach ($wires as $wire) {
            for ($stream = 1; $stream < 2 * 10; $stream += 2) {
                $wire->send(Wire::call($stream, self::WATCH) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, self::EMPTY_MESSAGE));
            }
            // Its answer says that the calls before it have arrived.
            $wire->send(Wire::frame(Wire::PING, payload: '12345678'));
            self::assertNotNull($wire->await(Wire::PING));
        }
        $server->open('run');
        $ended = [];
        foreach ($wires as $wire) {
            for ($answer = 0; $answer < 10; $answer++) {
                $head = $wire->await(Wire::HEADERS);
                self::assertNotNull($head, 'a watch has no answer');
                $ended[] = ($head[0] & Wire::END_STREAM) !== 0;
            }
        }
        // A quarter of the fibers is for watches, and one client gets half of them.
        self::assertSame([5, 15], [\count(array_keys($ended, false, true)), \count(array_keys($ended, true, true))]);
        $server->open('stop');
        array_map(static fn(Wire $wire) => $wire->close(), $wires);
        self::assertSame('', $server->output());
    }

    public function testHealthChecksCanBeSwitchedOff(): void
    {
        $server = $this->serve(arguments: ', new ServerOptions(health: false)', more: '$grpc->health()->set("api.Users", false);');

        self::assertStatus(Status::Unimplemented, $server->post('/grpc.health.v1.Health/Check', self::EMPTY_MESSAGE), 'there is no method /grpc.health.v1.Health/Check');
        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
    }

    public function testTheHealthOfAnUnknownServiceIsNotFoundByCheckAndUnknownToWatch(): void
    {
        $server = $this->serve();
        $unknown = self::frame("\x0a\x04none");
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::WATCH) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, $unknown));

        self::assertStatus(Status::NotFound, $server->post('/grpc.health.v1.Health/Check', $unknown), 'unknown service "none"');
        self::assertSame(self::frame("\x08\x03"), $wire->await(Wire::DATA)[2]);
        $long = self::frame("\x0a\xe0\xa7\x12" . str_repeat('s', 300_000));
        self::assertStatus(Status::NotFound, $server->post('/grpc.health.v1.Health/Check', $long), 'unknown service, its name has 300000 bytes');
    }

    public function testClientsShowCertificatesAndTheServersAreReplacedWithoutDroppingACall(): void
    {
        $certificates = new Certificates();
        array_map(static fn(string $name) => $certificates->issue($name, 'users.test'), ['before', 'after', 'client']);
        $directory = $certificates->directory;
        $server = $this->serve(
            '"get" => static function () { global $app; $app->reloadCertificates(); return new User(7); }, "list" => static function () { yield new User(1); gate("last"); yield new User(2); }',
            ", tls: new \\Weft\\Http\\Tls(new \\Weft\\Http\\Certificate('$directory/before.crt', '$directory/before.key'), '$directory/ca.crt')",
        );
        $proto = ['-import-path', \dirname(__DIR__, 2) . '/examples/users', '-proto', 'users.proto'];
        $secure = ['-cacert', "$directory/ca.crt", '-authority', 'users.test', ...$proto];
        $shown = ['-cert', "$directory/client.crt", '-key', "$directory/client.key"];
        $call = static fn(array $options, string $method): array => Tool::run('grpcurl', [...$options, $server->address, $method]);

        $open = proc_open([Tool::path('grpcurl'), ...$secure, ...$shown, $server->address, 'api.Users/List'], [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes);
        self::assertStringContainsString('{', (string) fgets($pipes[1]));
        self::assertSame('before', self::subject($server, $directory));
        rename("$directory/after.crt", "$directory/before.crt");
        rename("$directory/after.key", "$directory/before.key");
        [$exit, $output] = $call([...$secure, ...$shown], 'api.Users/Get');
        $subject = self::subject($server, $directory);
        $server->open('last');
        $list = (string) stream_get_contents($pipes[1]);
        $ended = proc_close($open);
        [$refused] = $call($secure, 'api.Users/Get');
        $certificates->remove();

        self::assertSame([0, ['id' => '7']], [$exit, json_decode($output, true)], $output);
        self::assertSame('after', $subject);
        self::assertSame(0, $ended, $list);
        self::assertStringContainsString('"2"', $list);
        self::assertNotSame(0, $refused);
    }

    private static function subject(GrpcProcess $server, string $directory): string
    {
        $context = stream_context_create(['ssl' => [
            'verify_peer' => false, 'verify_peer_name' => false, 'capture_peer_cert' => true, 'alpn_protocols' => 'h2',
            'local_cert' => "$directory/client.crt", 'local_pk' => "$directory/client.key",
        ]]);
        $socket = stream_socket_client("tls://$server->address", $code, $message, Timing::DEADLINE, STREAM_CLIENT_CONNECT, $context);
        self::assertIsResource($socket, (string) $message);

        return openssl_x509_parse(stream_context_get_options($socket)['ssl']['peer_certificate'])['subject']['CN'];
    }

    public function testADeadlineOfAMillisecondCancelsTheStatementAndTheConnectionIsBackInThePool(): void
    {
        $dsn = var_export(getenv('DATABASE_URL') ?: throw new \RuntimeException('DATABASE_URL is not set: scripts/services up'), true);
        $server = $this->serve(
            <<<'PHP'
                "get" => static function () {
                    global $db;
                    $start = microtime(true);
                    try {
                        $db->execute("SELECT pg_sleep(60)");
                    } finally {
                        say(sprintf("cancelled after %d ms", (microtime(true) - $start) * 1e3));
                    }
                },
                "list" => static function () {
                    global $db;
                    $start = microtime(true);
                    $db->execute("SELECT 1");
                    yield new User((int) (microtime(true) - $start));
                }
                PHP,
            more: "\$db = \\Weft\\Sql\\Database::connect($dsn, new \\Weft\\Pool\\PoolOptions(size: 1));",
        );
        $server->post(self::LIST, self::EMPTY_MESSAGE);

        Timing::until(static function () use ($server): bool {
            $answer = $server->post(self::GET, self::USER_228, '-H', 'grpc-timeout: 1m');
            // A millisecond may be over before the request has arrived: then its stream is reset, and there is no answer. It may also
            // be over before the handler begins.
            $answer->status() === null || self::assertStatus(Status::DeadlineExceeded, $answer, 'the deadline has passed');

            return substr_count($server->log(), " ms\n") >= 5;
        }, 'five statements are cancelled');
        preg_match_all('/cancelled after (\d+) ms/', $server->log(), $milliseconds);
        self::assertLessThan(30_000, max(array_map(intval(...), $milliseconds[1])), 'the statement takes a minute');
        $answer = $server->post(self::LIST, self::EMPTY_MESSAGE);
        self::assertStatus(Status::Ok, $answer);
        // An int64 of up to 127 is one byte; the default value, 0, is none.
        self::assertLessThan(30, \ord($answer->messages()[0][1] ?? "\0"), 'the only connection is free at once, not when the statement would have ended');
    }

    public function testAHandlerThatDoesNotReadHoldsItsClientBackAndNobodyElse(): void
    {
        $server = $this->serve('"import" => static function () { delay(60); }');
        $server->post(self::GET, self::USER_228);
        $before = self::residentKib($server);

        $answer = $server->post(self::IMPORT, str_repeat(self::frame(str_repeat("\x08\x01", 500)), 50_000), '--max-time', '2');

        self::assertSame(28, $answer->exit);
        self::assertLessThan(8_192, self::residentKib($server) - $before);
        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
    }

    public function testCallsAreMeasuredByMethodAndStatus(): void
    {
        $server = $this->serve(
            '"list" => static fn() => throw new StatusException(Status::NotFound, "no")',
            more: '$app->metrics("127.0.0.1:0");',
        );
        $server->post(self::GET, self::USER_228);
        $server->post(self::GET, self::USER_228);
        $server->post(self::LIST, self::EMPTY_MESSAGE);
        self::assertTrue($server->awaitLog('/metrics'));
        self::assertSame(1, preg_match('~http://\S+/metrics~', $server->log(), $address), $server->log());

        $metrics = (string) file_get_contents($address[0]);

        self::assertStringContainsString("weft_grpc_calls_total{method=\"/api.Users/Get\",status=\"OK\"} 2\n", $metrics);
        self::assertStringContainsString("weft_grpc_calls_total{method=\"/api.Users/List\",status=\"NOT_FOUND\"} 1\n", $metrics);
        self::assertStringContainsString("weft_grpc_call_duration_seconds_count{method=\"/api.Users/Get\"} 2\n", $metrics);
    }

    public function testTheTraceOfACallGoesOn(): void
    {
        $server = $this->serve('"get" => static fn($request, Call $call) => new User(name: $call->trace()->traceparent)');

        $name = substr($server->post(self::GET, self::USER_228, '-H', 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')->messages()[0], 2);

        self::assertMatchesRegularExpression('/^00-0af7651916cd43dd8448eb211c80319c-(?!b7ad6b7169203331)[0-9a-f]{16}-01$/', $name);
    }

    public function testAFailedCallIsLoggedWithItsTraceAndTheNamesOfOpenTelemetry(): void
    {
        $server = $this->serve('"get" => static fn() => throw new LogicException("broken")', app: 'logger: new Weft\Log\StreamLogger(format: Weft\Log\Format::Json)');

        $server->post(self::GET, self::USER_228, '-H', 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');

        self::assertTrue($server->awaitLog('broken'));
        $record = json_decode(explode("\n", $server->log())[0], true);
        self::assertSame(['error', '0af7651916cd43dd8448eb211c80319c', 'grpc', 'api.Users', 'Get', 2, '127.0.0.1'], array_map(
            static fn(string $name): mixed => $record[$name] ?? null,
            ['level', 'trace_id', 'rpc.system', 'rpc.service', 'rpc.method', 'rpc.grpc.status_code', 'client.address'],
        ));
        self::assertGreaterThan(0, $record['client.port']);
    }

    public function testAnExceptionThatQuotesARequestIsOneSmallRecord(): void
    {
        $server = $this->serve('"get" => static fn() => throw new LogicException("no such user: " . str_repeat("{exception}", 10_000))');

        $server->post(self::GET, self::USER_228);

        self::assertTrue($server->awaitLog('no such user'));
        self::assertLessThan(100_000, \strlen($server->log()));
    }

    public function testOutputOfAHandlerIsNoPartOfItsAnswer(): void
    {
        $server = $this->serve('"get" => static function () { echo "oops"; return new User(3); }');

        self::assertSame(["\x08\x03"], $server->post(self::GET, self::USER_228)->messages());
        self::assertTrue($server->awaitLog('Discarded output printed by /api.Users/Get'));
    }

    private static function residentKib(GrpcProcess $server): int
    {
        preg_match('/^VmRSS:\s+(\d+)/m', (string) file_get_contents("/proc/{$server->pid()}/status"), $found);

        return (int) $found[1];
    }
}
