<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Grpc\Limits;
use Weft\Grpc\MessageLimits;
use Weft\Grpc\MethodLimits;
use Weft\Grpc\StreamLimits;
use Weft\Grpc\Status;
use Weft\Tests\Timing;

/** Limits of one service or method, beside those of the server. */
final class MethodLimitsTest extends GrpcTestCase
{
    public function testCallsOfAMethodWaitForEachOtherAndTooManyAreRefused(): void
    {
        $server = $this->limited("'api.Users/Get' => new MethodLimits(inFlight: 2, queue: 1)", <<<'PHP'
            'get' => static function (GetUserRequest $request) {
                static $running = 0;
                say('running ' . ++$running);
                gate('get');
                $running--;
                return new User($request->id);
            }
            PHP);
        $wire = new Wire($server->connect());
        for ($stream = 1; $stream <= 7; $stream += 2) {
            $wire->send(Wire::call($stream, self::GET) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, self::USER_228));
        }
        [, $refused] = $wire->await(Wire::HEADERS) ?? self::fail('none was refused');
        // The other methods do not wait.
        $other = $server->post(self::LIST, self::EMPTY_MESSAGE);
        $server->open('get');

        $answered = [];
        while (\count($answered) < 3) {
            [, $stream] = $wire->await(Wire::DATA) ?? self::fail('only ' . \count($answered) . ' were answered');
            $answered[] = $stream;
        }

        self::assertStatus(Status::Ok, $other);
        self::assertSame(7, $refused);
        self::assertEqualsCanonicalizing([1, 3, 5], $answered);
        // Two ran at the same time and never three. The handlers see the open gate in any order.
        self::assertStringContainsString('running 2', $server->log());
        self::assertStringNotContainsString('running 3', $server->log());
        self::assertSame(3, substr_count($server->log(), 'running'));
        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
    }

    public function testARefusedCallSaysWhy(): void
    {
        $server = $this->limited("'api.Users' => new MethodLimits(inFlight: 1, queue: 0)", "'get' => static function () { say('began'); delay(600); return new User(); }");
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::GET) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::USER_228));
        self::assertTrue($server->awaitLog('began'));

        self::assertStatus(Status::ResourceExhausted, $server->post(self::LIST, self::EMPTY_MESSAGE), 'api.Users has 1 calls in progress and 0 waiting, which is all it takes');

        // A cancelled call gives its place back.
        $wire->close();
        Timing::until(static fn(): bool => $server->post(self::LIST, self::EMPTY_MESSAGE)->status() === Status::Ok->value, 'the place is free again');
    }

    public function testACallThatHasLeftTheQueueDoesNotRun(): void
    {
        $server = $this->limited("'api.Users/Get' => new MethodLimits(inFlight: 1, queue: 5)", <<<'PHP'
            'get' => static function (GetUserRequest $request) {
                say("user $request->id");
                gate('get');
                return new User($request->id);
            }
            PHP);
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::GET) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::frame("\x08\x01")));
        self::assertTrue($server->awaitLog('user 1'));

        // On a busy machine the deadline may pass before the request arrives: then there is no answer.
        Timing::until(static function () use ($server, &$late): bool {
            $late = $server->post(self::GET, self::frame("\x08\x02"), '-H', 'grpc-timeout: 50m');

            return $late->status() !== null;
        }, 'a request that arrives before its deadline');
        $server->open('get');
        $answer = $server->post(self::GET, self::frame("\x08\x03"));

        self::assertStatus(Status::DeadlineExceeded, $late, 'the deadline has passed');
        self::assertSame(["\x08\x03"], $answer->messages());
        self::assertStringNotContainsString('user 2', $server->log());
    }

    public function testTheTimeLimitOfAMethodHoldsWithoutADeadlineOfTheClient(): void
    {
        $server = $this->limited("'api.Users/Get' => new MethodLimits(timeout: 0.1)", "'get' => static function () { try { delay(600); } finally { say('cancelled'); } }");

        // On a busy machine the time may be over before the handler begins.
        Timing::until(static function () use ($server): bool {
            self::assertStatus(Status::DeadlineExceeded, $server->post(self::GET, self::USER_228, '-H', 'grpc-timeout: 500S'), 'the deadline has passed');

            return str_contains($server->log(), 'cancelled');
        }, 'a handler is cancelled');
        self::assertStatus(Status::DeadlineExceeded, $server->post(self::GET, self::USER_228), 'the deadline has passed');
    }

    public function testAMethodHasAMessageSizeLimitOfItsOwn(): void
    {
        $server = $this->limited("'api.Users' => new MethodLimits(messageBytes: 100), 'api.Users/Import' => new MethodLimits(messageBytes: 10_000)");
        $large = self::frame("\x12" . "\x88\x27" . str_repeat('x', 5_000));

        self::assertStatus(Status::ResourceExhausted, $server->post(self::GET, $large), 'a message has 5003 bytes, the limit is 100');
        self::assertStatus(Status::Ok, $server->post(self::IMPORT, $large));
    }

    /** @dataProvider impossible */
    #[DataProvider('impossible')]
    public function testInvalidLimitsAreRefused(string $message, array $limits): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);

        new MethodLimits(...$limits);
    }

    /** @return iterable<array{string, array<string, mixed>}> */
    public static function impossible(): iterable
    {
        yield ['inFlight must be greater than 0, got 0', ['inFlight' => 0]];
        yield ['timeout must be greater than 0, got NAN', ['timeout' => \NAN]];
        yield ['queue must not be less than 0, got -1', ['queue' => -1]];
    }

    public function testEveryLimitOfAServerReachesTheExtensionUnderTheNameThatItReads(): void
    {
        self::assertSame([
            'inFlight' => 1, 'queue' => 2, 'clientShare' => 0.3, 'messageBytes' => 4, 'metadataBytes' => 5_000, 'bufferedBytes' => 5, 'requestTimeout' => 6.0,
            'writeTimeout' => 7.0,
            'streams' => 8, 'streamsPerConnection' => 9, 'watches' => 10, 'watchesPerConnection' => 11,
        ], (new Limits(1, 2, 0.3, [], new MessageLimits(4, 5, 6.0, 7.0, 5_000), new StreamLimits(8, 9, 10, 11)))->native());
    }

    /** @dataProvider impossibleOfAServer */
    #[DataProvider('impossibleOfAServer')]
    public function testInvalidLimitsOfAServerAreRefused(string $message, \Closure $limits): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);

        $limits();
    }

    /** @return iterable<array{string, \Closure(): object}> */
    public static function impossibleOfAServer(): iterable
    {
        yield ['The limit inFlight must be greater than 0, got 0', static fn() => new Limits(inFlight: 0)];
        yield ['The limit clientShare must be greater than 0, got 0', static fn() => new Limits(clientShare: 0.0)];
        yield ['The limit clientShare must be at most 1, got 1.5', static fn() => new Limits(clientShare: 1.5)];
        yield ['The limit messages.writeTimeout must be greater than 0, got NAN', static fn() => new MessageLimits(writeTimeout: \NAN)];
    }

    private function limited(string $limits, string $methods = ''): GrpcProcess
    {
        $limits = str_replace('new MethodLimits', 'new \Weft\Grpc\MethodLimits', $limits);

        return $this->serve($methods, ", new ServerOptions(limits: new Limits(methods: [$limits]))");
    }
}
