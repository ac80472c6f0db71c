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
use Weft\Grpc\Client\Compression;
use Weft\Grpc\Client\Http2Channel;
use Weft\Grpc\Client\Keepalive;
use Weft\Grpc\Client\MethodConfig;
use Weft\Grpc\Client\RetryPolicy;
use Weft\Grpc\Client\RetryThrottling;
use Weft\Grpc\Client\ServiceConfig;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Runtime\Internal\Blocking;
use Weft\Tests\Timing;

use function Weft\all;
use function Weft\delay;
use function Weft\run;

require_once __DIR__ . '/../../examples/users/autoload.php';

/** Several servers, retries, compression and lost connections, against servers in PHP. */
final class ClientTest extends GrpcTestCase
{
    /** Its name is the process it runs in. */
    private const PID = '"get" => static fn() => new User(name: (string) getmypid())';
    /** Fails that often, named by the request's id, before it answers with the number of its attempts. */
    private const FLAKY = <<<'PHP'
        "get" => static function ($request) {
            static $calls = 0;
            return ++$calls > $request->id ? new User($calls) : throw new StatusException(Status::Unavailable, "not yet");
        }
        PHP;

    public function testACallThatOutlivesTheGraceIsCancelledAndEndsWithUnavailable(): void
    {
        $server = $this->serve('"get" => static function () { exec("kill " . getmypid()); delay(600.0); return new User(1); }', app: 'grace: 0.3');
        $client = $this->client($server->address);
        $server->endsItself();

        $failure = self::failure(static fn() => $client->get(new GetUserRequest(1)));

        self::assertSame([Status::Unavailable, 'the server is stopping'], [$failure->status, $failure->getMessage()]);
        self::assertTrue($server->awaitLog('did not end within the grace period of 0.3 seconds and is cancelled'));
        self::assertMatchesRegularExpression('~/api\.Users/Get from 127\.0\.0\.1:\d+ did not end~', $server->log());
        self::assertSame([0, "ended\n"], $server->stop());
    }

    public function testACallIsMadeAgainAsItsPolicySays(): void
    {
        $client = $this->client($this->serve(self::FLAKY)->address, self::retrying(new RetryPolicy([Status::Unavailable], initialBackoff: 0.02)));

        self::assertSame(3, $client->get(new GetUserRequest(2))->id);
    }

    public function testItIsMadeNoOftenerThanThePolicySays(): void
    {
        $client = $this->client($this->serve(self::FLAKY)->address, self::retrying(new RetryPolicy([Status::Unavailable], maxAttempts: 2, initialBackoff: 0.02)));

        self::assertSame('not yet', self::failure(static fn() => $client->get(new GetUserRequest(3)))->getMessage());
        self::assertSame(3 + 1, $client->get(new GetUserRequest(3))->id);
    }

    public function testAnotherStatusIsNotRetried(): void
    {
        $client = $this->client($this->serve(self::FLAKY)->address, self::retrying(new RetryPolicy([Status::Aborted], initialBackoff: 0.02)));

        self::assertSame(Status::Unavailable, self::failure(static fn() => $client->get(new GetUserRequest(1)))->status);
    }

    public function testTheServerMayNameThePauseOrForbidAnotherAttempt(): void
    {
        $server = $this->serve(<<<'PHP'
            "get" => static function ($request) {
                static $calls = 0;
                return ++$calls % 2 === 0 ? new User($calls) : throw new StatusException(Status::Unavailable, "later", metadata: ["grpc-retry-pushback-ms" => (string) $request->id]);
            }
            PHP);
        $client = $this->client($server->address, self::retrying(new RetryPolicy([Status::Unavailable], initialBackoff: 60.0, maxBackoff: 60.0)));
        $start = microtime(true);

        self::assertSame(2, $client->get(new GetUserRequest(300))->id);
        self::assertGreaterThan(0.3, microtime(true) - $start);
        self::assertSame('later', self::failure(static fn() => $client->get(new GetUserRequest(-1)))->getMessage());
    }

    public function testAServerCannotDelayAClientForDays(): void
    {
        $server = $this->serve('"get" => static function () { say("asked"); throw new StatusException(Status::Unavailable, "tomorrow", metadata: ["grpc-retry-pushback-ms" => "86400000"]); }');
        $client = $this->client($server->address, self::retrying(new RetryPolicy([Status::Unavailable], initialBackoff: 0.01)));

        self::assertSame('tomorrow', self::failure(static fn() => $client->get(new GetUserRequest()))->getMessage());
        self::assertSame(1, substr_count($server->log(), 'asked'));
    }

    public function testRetriesEndWhereTooMuchFails(): void
    {
        $server = $this->serve('"get" => static function () { say("asked"); throw new StatusException(Status::Unavailable, "no"); }');
        $config = new ServiceConfig(methods: ['' => new MethodConfig(retry: new RetryPolicy([Status::Unavailable], initialBackoff: 0.001))], throttling: new RetryThrottling(6, 0.1));
        $client = $this->client($server->address, $config);
        for ($i = 0; $i < 10; $i++) {
            self::failure(static fn() => $client->get(new GetUserRequest()));
        }

        // Six tokens: five, four, three are left, and with three there is no retry any more.
        self::assertSame(10 + 2, substr_count($server->log(), 'asked'));
    }

    public function testAStreamIsAskedForAgainOnlyBeforeItsFirstMessage(): void
    {
        $server = $this->serve(<<<'PHP'
            "list" => static function ($request) {
                static $calls = 0;
                if (++$calls === 1) { throw new StatusException(Status::Unavailable, "not yet"); }
                yield new User($calls);
                throw new StatusException(Status::Unavailable, "broken");
            }
            PHP);
        $client = $this->client($server->address, self::retrying(new RetryPolicy([Status::Unavailable], initialBackoff: 0.02)));
        $ids = [];

        $failure = self::failure(static function () use ($client, &$ids): void {
            foreach ($client->list(new ListUserRequest()) as $user) {
                $ids[] = $user->id;
            }
        });

        self::assertSame([[2], 'broken'], [$ids, $failure->getMessage()]);
    }

    public function testTheTimeoutIsForAllAttemptsTogether(): void
    {
        $client = $this->client($this->serve(self::FLAKY)->address, self::retrying(new RetryPolicy([Status::Unavailable], initialBackoff: 60.0, maxBackoff: 60.0)));
        $start = microtime(true);

        self::assertSame(Status::Unavailable, self::failure(static fn() => $client->get(new GetUserRequest(100), timeout: 0.6))->status);
        self::assertLessThan(30.0, microtime(true) - $start, 'the next attempt would come after the time-out, so there is none');
    }

    public function testTheFirstServerThatIsThereIsCalledAndTheNextWhenItIsGone(): void
    {
        $first = $this->serve(self::PID);
        $second = $this->serve(self::PID);
        $client = $this->client(['127.0.0.1:1', $first->address, $second->address]);

        self::assertSame((string) $first->pid(), $client->get(new GetUserRequest())->name);
        $first->kill();
        $first->end();

        self::assertSame((string) $second->pid(), self::untilItAnswers($client)->name);
    }

    public function testServersTakeTurns(): void
    {
        $servers = [$this->serve(self::PID), $this->serve(self::PID)];
        $client = $this->client(array_column($servers, 'address'), new ServiceConfig(Balancing::RoundRobin));
        $client->get(new GetUserRequest());
        Timing::until(static fn(): bool => $client->get(new GetUserRequest())->name !== $client->get(new GetUserRequest())->name, 'both are connected');
        $names = [];
        for ($i = 0; $i < 20; $i++) {
            $names[] = $client->get(new GetUserRequest())->name;
        }

        $expected = array_map(static fn(GrpcProcess $server): string => (string) $server->pid(), $servers);
        self::assertEqualsCanonicalizing(array_fill_keys($expected, 10), array_count_values($names));
        self::assertEqualsCanonicalizing($expected, array_map(strval(...), array_keys(array_count_values($names))));

        $servers[0]->kill();
        $servers[0]->end();
        self::untilItAnswers($client);
        for ($i = 0; $i < 5; $i++) {
            self::assertSame($expected[1], $client->get(new GetUserRequest())->name);
        }
    }

    public function testAServerThatComesBackIsFoundAgain(): void
    {
        $server = $this->serve(self::PID);
        $client = $this->client($server->address);
        $before = $client->get(new GetUserRequest())->name;
        $server->stop();
        $failure = null;
        // The connection may first be found lost by a call that is on it.
        Timing::until(static function () use ($client, &$failure): bool {
            $failure = self::failure(static fn() => $client->get(new GetUserRequest()));

            return str_starts_with($failure->getMessage(), 'cannot connect');
        }, 'the connection is lost');
        $again = $this->serve(self::PID, address: $server->address);

        self::assertSame(Status::Unavailable, $failure->status);
        self::assertStringStartsWith("cannot connect to $server->address: ", $failure->getMessage());
        self::assertNotSame($before, self::untilItAnswers($client)->name);
        self::assertSame((string) $again->pid(), $client->get(new GetUserRequest())->name);
    }

    public function testACallMayWaitForAServer(): void
    {
        $server = $this->serve(self::PID);
        $server->stop();
        $client = $this->client($server->address, new ServiceConfig(methods: ['api.Users' => new MethodConfig(timeout: 100.0, waitForReady: true)]));

        $name = run(function () use ($client, $server): string {
            $call = \Weft\async(static fn() => $client->get(new GetUserRequest())->name);
            \Weft\delay(0.3);
            $this->serve(self::PID, address: $server->address);

            return $call->await();
        });

        self::assertNotSame('', $name);
    }

    public function testManyCallsToADeadServerShareOneAttemptToConnect(): void
    {
        // Accepts and says nothing: an attempt takes as long as it may.
        $silent = stream_socket_server('tcp://127.0.0.1:0');
        $client = new UsersClient(Http2Channel::connect((string) stream_socket_get_name($silent, false), new \Weft\Grpc\Client\Tls(verify: false), options: new ChannelOptions(connectTimeout: 0.3)));

        $failures = run(static fn(): array => all(array_fill(0, 50, static fn() => self::failure(static fn() => $client->get(new GetUserRequest()))->status)));

        self::assertSame(array_fill(0, 50, Status::Unavailable), $failures);
        for ($attempts = 0; @stream_socket_accept($silent, 0.0) !== false; $attempts++) {
        }
        self::assertSame(1, $attempts);
    }

    public function testMessagesAreCompressedWhereTheChannelSaysSo(): void
    {
        $server = $this->serve('"get" => static fn($request, Call $call) => new User(name: $call->wasCompressed() ? "compressed" : "plain")');

        foreach (Compression::cases() as $compression) {
            self::assertSame('compressed', (new UsersClient(Http2Channel::connect($server->address, options: new ChannelOptions(compression: $compression))))->get(new GetUserRequest(1))->name);
        }
        self::assertSame('plain', (new UsersClient(Http2Channel::connect($server->address)))->get(new GetUserRequest(1))->name);
    }

    public function testAServerThatFallsSilentIsNoticed(): void
    {
        $server = $this->serve('"get" => static function () { say("working"); delay(300); }', ', connections: new \Weft\Http\Limits()');
        $client = new UsersClient(Http2Channel::connect($server->address, options: new ChannelOptions(keepalive: new Keepalive(0.3, 3.0))));
        $start = 0.0;

        $failure = self::failure(static function () use ($client, $server, &$start): void {
            run(static function () use ($client, $server, &$start): void {
                $call = \Weft\async(static fn() => $client->get(new GetUserRequest()));
                while (!str_contains($server->log(), 'working')) {
                    \Weft\delay(0.01);
                }
                $start = microtime(true);
                posix_kill($server->pid(), SIGSTOP);
                $call->await();
            });
        });

        posix_kill($server->pid(), SIGCONT);
        self::assertSame(Status::Unavailable, $failure->status);
        self::assertLessThan(150.0, microtime(true) - $start, 'half of what the call takes');
    }

    /** @dataProvider ends */
    #[DataProvider('ends')]
    public function testACallEndsWhileItsRequestsWait(Status $status, string $import, float $timeout): void
    {
        $client = $this->client($this->serve($import)->address);

        run(static function () use ($client, $status, $timeout): void {
            $isOver = false;
            $requests = static function () use (&$isOver): \Generator {
                try {
                    yield new User(1);
                    delay(Timing::DEADLINE);
                    self::fail('the requests were read on');
                } finally {
                    $isOver = true;
                }
            };
            self::assertSame($status, self::failure(static fn() => $client->import($requests(), timeout: $timeout))->status);
            Timing::until(static function () use (&$isOver): bool {
                delay(0.0);

                return $isOver;
            }, 'the requests are left');
        });
    }

    /** @return iterable<string, array{Status, string, float}> */
    public static function ends(): iterable
    {
        yield 'by its deadline' => [Status::DeadlineExceeded, '', 0.2];
        yield 'by its server' => [Status::PermissionDenied, '"import" => static fn() => throw new StatusException(Status::PermissionDenied, "no")', Timing::DEADLINE];
    }

    public function testOutsideRunNoRequestIsReadAfterTheDeadline(): void
    {
        $client = $this->client($this->serve()->address);
        $read = 0;
        $requests = static function () use (&$read): \Generator {
            while (true) {
                $read++;
                yield new User(1);
                usleep(150_000);
            }
        };

        self::assertSame(Status::DeadlineExceeded, self::failure(static fn() => $client->import($requests(), timeout: 0.2))->status);
        self::assertLessThanOrEqual(3, $read);
    }

    public function testCallsOutsideRunLeaveNothingBehind(): void
    {
        $server = $this->serve(<<<'PHP'
            "import" => static function () { delay(60); },
            "list" => static function () { yield new User(1); delay(60); },
            "get" => static function () { delay(60); }
            PHP);
        $client = $this->client($server->address);
        $large = static function (): \Generator {
            for ($i = 0; $i < 1_000; $i++) {
                yield new User(name: str_repeat('a', 10_000));
            }
        };
        $before = [\count(Blocking::$finished), \Weft\Native\running()];
        for ($i = 0; $i < 3; $i++) {
            self::assertSame(Status::DeadlineExceeded, self::failure(static fn() => $client->import($large(), timeout: 0.05))->status);
            self::assertSame(Status::DeadlineExceeded, self::failure(static fn() => iterator_to_array($client->list(new ListUserRequest(), timeout: 0.05)))->status);
            self::assertSame(Status::DeadlineExceeded, self::failure(static fn() => $client->get(new GetUserRequest(), timeout: 0.05))->status);
        }

        self::assertSame($before, [\count(Blocking::$finished), \Weft\Native\running()]);
    }

    /** @param string|list<string> $addresses */
    private function client(string|array $addresses, ?ServiceConfig $config = null): UsersClient
    {
        return new UsersClient(Http2Channel::connect($addresses, options: new ChannelOptions(timeout: 100.0, config: $config ?? new ServiceConfig())));
    }

    private static function retrying(RetryPolicy $policy): ServiceConfig
    {
        return new ServiceConfig(methods: ['api.Users' => new MethodConfig(retry: $policy)]);
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

    /** The connection may be found lost by a call that is on it. */
    private static function untilItAnswers(UsersClient $client): User
    {
        $user = null;
        Timing::until(static function () use ($client, &$user): bool {
            try {
                $user = $client->get(new GetUserRequest());

                return true;
            } catch (StatusException $failure) {
                self::assertSame(Status::Unavailable, $failure->status);

                return false;
            }
        }, 'a server answers');

        return $user;
    }
}
