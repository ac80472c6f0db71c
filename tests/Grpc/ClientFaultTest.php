<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Examples\Users\GetUserRequest;
use Weft\Examples\Users\ListUserRequest;
use Weft\Examples\Users\User;
use Weft\Examples\Users\UsersClient;
use Weft\Grpc\Client\Balancing;
use Weft\Grpc\Client\ChannelOptions;
use Weft\Grpc\Client\Http2Channel;
use Weft\Grpc\Client\Keepalive;
use Weft\Grpc\Client\ServiceConfig;
use Weft\Grpc\Client\Tls;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Runtime\CancelledException;

use function Weft\async;
use function Weft\delay;
use function Weft\detach;
use function Weft\run;
use function Weft\timeout;

require_once __DIR__ . '/../../examples/users/autoload.php';

/** What a caller sees where servers, networks and its own code do not do what they should. */
final class ClientFaultTest extends GrpcTestCase
{
    /** Seconds after which a call ends: longer than any wait of these tests. */
    private const DEADLINE = 100.0;
    /** Says which call has begun, and ends it only when its process is killed. */
    private const HANGS = '"get" => static function ($request) { say("effect $request->id;"); delay(60); }';

    public function testACallThatReachedAServerIsNotMadeAgainWhenThatDies(): void
    {
        $first = $this->serve(self::HANGS);
        $second = $this->serve(self::HANGS);
        $client = $this->client([$first->address, $second->address]);

        $failure = self::failure(static fn() => run(static function () use ($client, $first): void {
            $call = async(static fn() => $client->get(new GetUserRequest(7)));
            async(static function () use ($first): void {
                while (!str_contains($first->log(), 'effect 7;')) {
                    delay(0.01);
                }
                $first->kill();
            });
            $call->await();
        }));

        self::assertSame(Status::Unavailable, $failure->status);
        self::assertStringContainsString('the connection was lost', $failure->getMessage());
        self::assertSame(1, substr_count($first->log() . $second->log(), 'effect'));
    }

    public function testAStreamWhoseServerDiesFailsBehindItsMessages(): void
    {
        $server = $this->serve('"list" => static function () { yield new User(1); yield new User(2); say("sent"); delay(60); }');
        $client = $this->client($server->address);
        $ids = [];

        $failure = self::failure(static function () use ($client, $server, &$ids): void {
            foreach ($client->list(new ListUserRequest()) as $user) {
                $ids[] = $user->id;
                if ($user->id === 2) {
                    $server->kill();
                }
            }
        });

        self::assertSame([[1, 2], Status::Unavailable], [$ids, $failure->status]);
    }

    /** @dataProvider largeMetadata */
    #[DataProvider('largeMetadata')]
    public function testMetadataAboveTheLimitOfTheClientIsNamed(int $bytes): void
    {
        $server = $this->serve(
            "'get' => static function (\$request, \$call) { \$call->trailer('x-large', str_repeat('a', $bytes)); return new User(); }",
            ', new ServerOptions(limits: new Limits(messages: new MessageLimits(metadataBytes: 10_000_000)))',
        );
        $client = $this->client($server->address);

        $failure = self::failure(static fn() => $client->get(new GetUserRequest(7)));

        self::assertStringContainsString('this client accepts no header list above 262144 bytes', $failure->getMessage());
    }

    /** @return iterable<string, array{int}> */
    public static function largeMetadata(): iterable
    {
        yield 'too large for the call' => [300_000];
        yield 'too large for the connection' => [2_000_000];
    }

    public function testMetadataAboveTheLimitOfTheServerEndsItsCallOnly(): void
    {
        $server = $this->serve('"get" => static function ($request) { gate("get"); return new User($request->id); }');
        $client = $this->client($server->address);

        [$user, $failures] = run(static function () use ($client, $server): array {
            $waiting = async(static fn() => $client->get(new GetUserRequest(7)));
            $failures = [];
            foreach ([17_000, 100_000, 3_000_000] as $bytes) {
                $failures[] = self::failure(static fn() => $client->get(new GetUserRequest(1), metadata: ['x-large' => str_repeat('a', $bytes)]));
            }
            $server->open('get');

            return [$waiting->await(), $failures];
        });

        self::assertSame(7, $user->id);
        self::assertSame(array_fill(0, 3, Status::ResourceExhausted), array_column($failures, 'status'));
        self::assertMatchesRegularExpression(
            "~^the metadata of /api.Users/Get has 100\\d\\d\\d bytes with the fields of the protocol, the server \\Q{$server->address}\\E accepts 16384 ~",
            $failures[1]->getMessage(),
        );
        self::assertSame(8, $client->get(new GetUserRequest(8), metadata: ['x-large' => str_repeat('a', 15_000)])->id);
    }

    public function testALongStatusMessageEndsNoOtherCallOfItsConnection(): void
    {
        $server = $this->serve('"get" => static function ($request) { if ($request->id === 1) { throw new StatusException(Status::NotFound, str_repeat("a", 3_000_000)); } delay(1.0); return new User($request->id); }');
        $client = $this->client($server->address);

        [$user, $failure] = run(static function () use ($client): array {
            $slow = async(static fn() => $client->get(new GetUserRequest(7)));
            $failure = self::failure(static fn() => $client->get(new GetUserRequest(1)));

            return [$slow->await(), $failure];
        });

        self::assertSame(Status::NotFound, $failure->status);
        self::assertStringEndsWith('a [cut, the message has 3000000 bytes]', $failure->getMessage());
        self::assertSame(7, $user->id);
    }

    public function testLeavingTheLoopOverAStreamCancelsItsCall(): void
    {
        $server = $this->serve('"list" => static function () { try { for ($i = 1; true; $i++) { yield new User($i); delay(0.01); } } finally { say("left"); } }');
        $client = $this->client($server->address);

        foreach ($client->list(new ListUserRequest()) as $user) {
            break;
        }

        self::assertTrue($server->awaitLog('left'), 'it was cancelled, not left to its deadline');
    }

    public function testRequestsThatThrowCancelTheCallAndAreWhatTheCallerSees(): void
    {
        $server = $this->serve('"import" => static function ($requests) { try { foreach ($requests as $one) { say("got $one->id"); } } finally { say("import ended"); } return new ImportSummary(); }');
        $client = $this->client($server->address);
        $broken = static function () use ($server): \Generator {
            yield new User(1);
            while (!str_ends_with($server->log(), "got 1\n")) {
                delay(0.01);
            }
            throw new \DomainException('no more users');
        };
        $import = static function () use ($client, $broken): void {
            try {
                $client->import($broken());
                self::fail('imported');
            } catch (\DomainException $error) {
                self::assertSame('no more users', $error->getMessage());
            }
        };

        $import();
        self::assertTrue($server->awaitLog("got 1\nimport ended\n"), $server->log());
        run(static function () use ($import, $server): void {
            $import();
            // The loop tells the server as it goes on.
            delay(0.01);
            self::assertTrue($server->awaitLog(str_repeat("got 1\nimport ended\n", 2)), $server->log());
        });
    }

    public function testRequestsThatThrowEndACallThatStreamsBothWays(): void
    {
        $client = $this->client($this->serve()->address);
        $broken = static function (): \Generator {
            yield new GetUserRequest(1);
            throw new \DomainException('no more requests');
        };
        run(static function () use ($client, $broken): void {
            $ids = [];
            try {
                foreach ($client->lookup($broken()) as $user) {
                    $ids[] = $user->id;
                }
                self::fail('it ended well');
            } catch (\DomainException $error) {
                self::assertSame('no more requests', $error->getMessage());
            }
            self::assertContains($ids, [[], [1]]);
            // The task that has caught it goes on.
            delay(0.01);
            self::assertSame(7, $client->get(new GetUserRequest(7))->id);
        });
    }

    public function testRequestsThatAwaitATaskThatWasCancelledFailTheirCallAndNotTheCaller(): void
    {
        $client = $this->client($this->serve()->address);

        run(static function () use ($client): void {
            $broken = static function (): \Generator {
                yield new GetUserRequest(1);
                $other = detach(static fn() => delay(60));
                delay(0.0);
                $other->cancel('not needed');
                $other->await();
            };
            try {
                foreach ($client->lookup($broken()) as $user) {
                }
                self::fail('it ended well');
            } catch (CancelledException $cancelled) {
                self::assertStringContainsString('not needed', $cancelled->getMessage());
            }
            delay(0.01);
            self::assertSame(7, $client->get(new GetUserRequest(7))->id);
        });
    }

    public function testAServerThatAnswersBeforeItHasReadEverythingIsHeard(): void
    {
        $server = $this->serve('"import" => static function () { say("answered"); return new ImportSummary(3); }');
        $client = $this->client($server->address);
        $endless = static function (): \Generator {
            while (true) {
                yield new User(name: str_repeat('a', 10_000));
            }
        };
        $start = microtime(true);

        self::assertSame(3, $client->import($endless())->count);
        self::assertSame(3, run(static fn() => $client->import($endless())->count));
        self::assertLessThan(self::DEADLINE, microtime(true) - $start, 'it did not wait for the deadline');
    }

    public function testAnswersThatAreThrownAwayUnreadEndTheirCall(): void
    {
        $server = $this->serve();
        $client = $this->client($server->address);
        $waiting = static function (): \Generator {
            yield new GetUserRequest(1);
            delay(600.0);
        };

        run(static function () use ($client, $waiting): void {
            timeout(60.0, static function () use ($client, $waiting): void {
                $answers = $client->lookup($waiting());
                delay(0.01);
                unset($answers);
            });
        });

        self::assertSame(5, $client->get(new GetUserRequest(5))->id);
    }

    /** @dataProvider wrongAddresses */
    #[DataProvider('wrongAddresses')]
    public function testAnAddressThatIsNoneIsNamed(string $address): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("\"$address\" is not the address of a server: write host:port or [ipv6]:port, with a port from 1 to 65535");

        Http2Channel::connect($address);
    }

    /** @return list<array{string}> */
    public static function wrongAddresses(): array
    {
        return [['localhost'], ['localhost:0'], ['localhost:99999'], ['http://localhost:80'], ['unix:/run/x'], ['::1:80'], [":80"], ["localhost:80\n"]];
    }

    public function testACertificateOfAnAuthorityIsRefusedInWords(): void
    {
        $directory = sys_get_temp_dir() . '/weft-tls-' . bin2hex(random_bytes(6));
        mkdir($directory);
        try {
            exec("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $directory/key.pem -out $directory/cert.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>&1", $output, $code);
            self::assertSame(0, $code, implode("\n", $output));
            $server = $this->serve(arguments: ", tls: new \\Weft\\Http\\Tls(new \\Weft\\Http\\Certificate('$directory/cert.pem', '$directory/key.pem'))", address: 'localhost:0');
            $address = 'localhost' . strrchr($server->address, ':');
            $client = new UsersClient(Http2Channel::connect($address, new Tls("$directory/cert.pem")));

            $failure = self::failure(static fn() => $client->get(new GetUserRequest()));
        } finally {
            exec('rm -rf ' . escapeshellarg($directory));
        }

        self::assertSame("cannot connect to $address: the server's own certificate is one of an authority (CA:TRUE): make it with basicConstraints=CA:FALSE", $failure->getMessage());
    }

    public function testAConnectionThatGetsTooOldIsReplacedAndItsCallsGoOn(): void
    {
        $server = $this->serve(
            '"get" => static function ($request) { delay($request->id / 1000); return new User($request->id); }',
            ', connections: new \Weft\Http\Limits(keepalive: new \Weft\Http\Keepalive(maxAge: 0.5, ageGrace: 100.0))',
        );
        $client = $this->client($server->address);

        $ids = run(static function () use ($client): array {
            $long = async(static fn() => $client->get(new GetUserRequest(2_500))->id);
            $ids = [];
            for ($i = 0; $i < 200; $i++) {
                $ids[] = $client->get(new GetUserRequest(10))->id;
            }

            return [$long->await(), array_sum($ids)];
        });

        self::assertSame([2_500, 2_000], $ids);
    }

    public function testANameThatDoesNotExistIsNamed(): void
    {
        foreach (Balancing::cases() as $balancing) {
            $client = $this->client('nowhere.invalid:9090', new ServiceConfig($balancing));
            $failure = self::failure(static fn() => $client->get(new GetUserRequest()));

            self::assertSame(Status::Unavailable, $failure->status);
            self::assertStringContainsString('nowhere.invalid', $failure->getMessage());
        }
    }

    public function testAServerWhoseNameDoesNotExistIsPassedOver(): void
    {
        $server = $this->serve();
        foreach (Balancing::cases() as $balancing) {
            $client = $this->client(['nowhere.invalid:9090', '127.0.0.1:1', $server->address], new ServiceConfig($balancing));

            self::assertSame(5, $client->get(new GetUserRequest(5))->id, $balancing->name);
        }
    }

    public function testAStatusMayHaveMuchToSay(): void
    {
        $server = $this->serve('"get" => static function ($request, Call $call) { $call->begin(["first" => str_repeat("f", 50_000)]); throw new StatusException(Status::NotFound, str_repeat("m", 20_000), [new User(name: str_repeat("d", 50_000))], ["last" => str_repeat("l", 50_000)]); }', ', new ServerOptions(limits: new Limits(messages: new MessageLimits(metadataBytes: 200_000)))');

        $failure = self::failure(fn() => $this->client($server->address)->get(new GetUserRequest()));

        self::assertSame([Status::NotFound, 2_048], [$failure->status, \strlen($failure->getMessage())]);
        self::assertSame(50_000, \strlen((string) $failure->details[0]->unpack(User::class)?->name));
        self::assertSame(50_000, \strlen($failure->metadata['last'][0]));
    }

    public function testAMessageOverTheLimitEndsItsCallOnly(): void
    {
        $server = $this->serve('"get" => static fn($request) => new User(name: str_repeat("a", $request->id))');
        $client = new UsersClient(Http2Channel::connect($server->address, options: new ChannelOptions(messageBytes: 1_000)));

        $failure = self::failure(static fn() => $client->get(new GetUserRequest(1_001)));

        self::assertSame([Status::ResourceExhausted, 'a message has 1004 bytes, the limit is 1000'], [$failure->status, $failure->getMessage()]);
        self::assertSame(900, \strlen($client->get(new GetUserRequest(900))->name));
    }

    /** @return iterable<string, array{string, Status, string}> */
    public static function otherAnswers(): iterable
    {
        yield 'a page' => ['Response::text("hello")', Status::Unknown, 'the server answered with the content type text/plain; charset=utf-8, which is not one of gRPC'];
        yield 'an unknown encoding' => ['new Response(200, ["content-type" => "application/grpc", "grpc-encoding" => "br"], "\1\0\0\0\1x")', Status::Internal, 'the server answers with the grpc-encoding "br", which is not known here'];
        yield 'not found' => ['Response::text("no", 404)', Status::Unimplemented, 'the server answered with HTTP 404 Not Found'];
        yield 'overload' => ['Response::text("no", 503)', Status::Unavailable, 'the server answered with HTTP 503 Service Unavailable'];
    }

    /** @dataProvider otherAnswers */
    #[DataProvider('otherAnswers')]
    public function testAnAnswerThatIsNoneOfGrpcIsAStatusThatSaysSo(string $answer, Status $status, string $message): void
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft-http');
        $autoload = var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        file_put_contents($program, <<<PHP
            <?php
            require $autoload;
            use Weft\Http\Response;
            \$app = new Weft\App();
            \$app->http('127.0.0.1:0')->post('/api.Users/Get', static fn() => $answer);
            \$app->run(static function (array \$addresses): void { echo \$addresses[0], "\\n"; });
            PHP);
        $server = GrpcProcess::launch([$program], $program);
        $client = $this->client($server->address);

        try {
            $failure = self::failure(static fn() => $client->get(new GetUserRequest()));
        } finally {
            $server->stop();
        }

        self::assertSame([$status, $message], [$failure->status, $failure->getMessage()]);
    }

    /** @return iterable<string, array{float}> */
    public static function endlessTimes(): iterable
    {
        yield 'infinite' => [INF];
        yield 'beyond all clocks' => [PHP_FLOAT_MAX];
        yield 'a thousand years' => [1_000 * 365 * 86_400.0];
    }

    /** @dataProvider endlessTimes */
    #[DataProvider('endlessTimes')]
    public function testATimeoutMayBeBeyondAllClocks(float $seconds): void
    {
        $server = $this->serve('"get" => static fn($request, Call $call) => new User((int) ($call->timeLeft() > 1e8))');
        $client = new UsersClient(Http2Channel::connect($server->address, options: new ChannelOptions(connectTimeout: $seconds, keepalive: new Keepalive($seconds, $seconds))));

        self::assertSame(1, $client->get(new GetUserRequest(), timeout: $seconds)->id);
    }

    public function testADeadlineThatIsOverFailsAtOnce(): void
    {
        $server = $this->serve();
        $client = $this->client($server->address);

        foreach ([0.0, -1.0] as $timeout) {
            self::assertSame(Status::DeadlineExceeded, self::failure(static fn() => $client->get(new GetUserRequest(), timeout: $timeout))->status);
        }
    }

    /** @return iterable<string, array{array<mixed>, string}> */
    public static function wrongMetadata(): iterable
    {
        yield 'upper case' => [['Upper' => 'a'], '"Upper" is not a name of metadata'];
        yield 'a colon' => [[':path' => '/'], '":path" is not a name of metadata'];
        yield 'a space' => [['a b' => 'a'], '"a b" is not a name of metadata'];
        yield 'one of the protocol' => [['grpc-timeout' => '1S'], 'the metadata "grpc-timeout" belongs to the protocol'];
        yield 'one of the connection' => [['upgrade' => 'h2c'], 'the metadata "upgrade" belongs to the protocol'];
        yield 'bytes in text' => [['a' => "\xff"], 'the metadata "a" must be printable ASCII'];
        yield 'a line' => [['a' => "x\r\nb: y"], 'the metadata "a" must be printable ASCII'];
        yield 'a number' => [['a' => 5], 'the metadata "a" must be a string or a list of strings'];
    }

    /**
     * @dataProvider wrongMetadata
     *
     * @param array<mixed> $metadata
     */
    #[DataProvider('wrongMetadata')]
    public function testMetadataThatCannotTravelIsRefusedBeforeTheCall(array $metadata, string $message): void
    {
        $client = $this->client('127.0.0.1:1');

        try {
            $client->get(new GetUserRequest(), metadata: $metadata);
            self::fail('sent');
        } catch (\Error $error) {
            self::assertStringContainsString($message, $error->getMessage());
        }
    }

    public function testMetadataMayHaveANumberForItsName(): void
    {
        $server = $this->serve('"get" => static fn($request, Call $call) => new User(name: $call->value("7"))');

        self::assertSame('seven', $this->client($server->address)->get(new GetUserRequest(), metadata: ['7' => 'seven'])->name);
    }

    public function testTheNextServerReceivesTheRemainingTimeOfADeadline(): void
    {
        $last = $this->serve('"get" => static fn($request, Call $call) => new User((int) ($call->timeLeft() * 1000))');
        $middle = $this->serve(
            '"get" => static function ($request, Call $call) {
                delay(0.3);
                $client = new \Weft\Examples\Users\UsersClient(\Weft\Grpc\Client\Http2Channel::connect("' . $last->address . '"));
                return $client->get($request, timeout: $call->timeLeft());
            }',
        );

        $left = $this->client($middle->address)->get(new GetUserRequest(), timeout: 60.0)->id;

        self::assertGreaterThan(200, $left);
        self::assertLessThanOrEqual(59_700, $left);
    }

    /** @param string|list<string> $addresses */
    private function client(string|array $addresses, ?ServiceConfig $config = null): UsersClient
    {
        return new UsersClient(Http2Channel::connect($addresses, options: new ChannelOptions(timeout: self::DEADLINE, config: $config ?? new ServiceConfig())));
    }

    private static function failure(\Closure $call): StatusException
    {
        try {
            $call();
        } catch (StatusException $failure) {
            return $failure;
        }
        self::fail('the call did not fail');
    }
}
