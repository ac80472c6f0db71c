<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use Weft\Grpc\MethodLimits;
use Weft\Grpc\Status;

/** Limits of one service or method, beside those of the server. */
final class MethodLimitsTest extends GrpcTestCase
{
    public function testCallsOfAMethodWaitForEachOtherAndTooManyAreRefused(): void
    {
        $server = $this->limited("'api.Users/Get' => new MethodLimits(inFlight: 2, queue: 1)", <<<'PHP'
            'get' => static function (GetUserRequest $request) {
                static $running = 0;
                say('running ' . ++$running);
                delay(0.3);
                $running--;
                return new User($request->id);
            }
            PHP);
        $wire = new Wire($server->connect());
        for ($stream = 1; $stream <= 7; $stream += 2) {
            $wire->send(Wire::call($stream, self::GET) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, self::USER_228));
        }
        // The other methods do not wait.
        $other = $server->post(self::LIST, self::EMPTY_MESSAGE);

        $answered = [];
        while (\count($answered) < 3) {
            [, $stream] = $wire->await(Wire::DATA) ?? self::fail('only ' . \count($answered) . ' were answered');
            $answered[] = $stream;
        }

        self::assertStatus(Status::Ok, $other);
        self::assertSame([1, 3, 5], $answered);
        self::assertStringNotContainsString('running 3', $server->log());
        self::assertSame(3, substr_count($server->log(), 'running'));
        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
    }

    public function testWhoIsRefusedIsToldWhy(): void
    {
        $server = $this->limited("'api.Users' => new MethodLimits(inFlight: 1, queue: 0)", "'get' => static function () { say('began'); delay(5); return new User(); }");
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::GET) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::USER_228));
        self::assertTrue($server->awaitLog('began'));

        self::assertStatus(Status::ResourceExhausted, $server->post(self::LIST, self::EMPTY_MESSAGE), 'api.Users has 1 calls in progress and 0 waiting, which is all it takes');

        // What was broken off gives its place back.
        fclose($this->socketOf($wire));
        $deadline = microtime(true) + 5.0;
        do {
            $answer = $server->post(self::LIST, self::EMPTY_MESSAGE);
        } while ($answer->status() !== 0 && microtime(true) < $deadline);
        self::assertStatus(Status::Ok, $answer);
    }

    public function testACallThatHasLeftTheQueueDoesNotRun(): void
    {
        $server = $this->limited("'api.Users/Get' => new MethodLimits(inFlight: 1, queue: 5)", <<<'PHP'
            'get' => static function (GetUserRequest $request) {
                say("user $request->id");
                delay(0.5);
                return new User($request->id);
            }
            PHP);
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::GET) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::frame("\x08\x01")));
        self::assertTrue($server->awaitLog('user 1'));

        $late = $server->post(self::GET, self::frame("\x08\x02"), '-H', 'grpc-timeout: 50m');
        $answer = $server->post(self::GET, self::frame("\x08\x03"));

        self::assertStatus(Status::DeadlineExceeded, $late, 'the deadline has passed');
        self::assertSame(["\x08\x03"], $answer->messages());
        self::assertStringNotContainsString('user 2', $server->log());
    }

    public function testAMethodHasATimeWhateverItsClientSays(): void
    {
        $server = $this->limited("'api.Users/Get' => new MethodLimits(timeout: 0.1)", "'get' => static function () { try { delay(30); } finally { say('cancelled'); } }");

        $answer = $server->post(self::GET, self::USER_228, '-H', 'grpc-timeout: 20S');

        self::assertStatus(Status::DeadlineExceeded, $answer, 'the deadline has passed');
        self::assertTrue($server->awaitLog('cancelled'));
        self::assertStatus(Status::DeadlineExceeded, $server->post(self::GET, self::USER_228), 'the deadline has passed');
    }

    public function testAMethodHasASizeOfMessagesOfItsOwn(): void
    {
        $server = $this->limited("'api.Users' => new MethodLimits(messageBytes: 100), 'api.Users/Import' => new MethodLimits(messageBytes: 10_000)");
        $large = self::frame("\x12" . "\x88\x27" . str_repeat('x', 5_000));

        self::assertStatus(Status::ResourceExhausted, $server->post(self::GET, $large), 'a message has 5003 bytes, the limit is 100');
        self::assertStatus(Status::Ok, $server->post(self::IMPORT, $large));
    }

    /** @dataProvider impossible */
    public function testLimitsThatCannotBeAreRefused(string $message, array $limits): void
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

    private function limited(string $limits, string $methods = ''): GrpcProcess
    {
        $limits = str_replace('new MethodLimits', 'new \Weft\Grpc\MethodLimits', $limits);

        return $this->serve($methods, ", limits: new Limits(methods: [$limits])");
    }

    /** @return resource */
    private function socketOf(Wire $wire)
    {
        return (fn() => $this->socket)->call($wire);
    }
}
