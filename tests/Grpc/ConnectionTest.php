<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use Weft\Grpc\Status;
use Weft\Tests\Timing;

/** Pings, age and the end of connections. */
final class ConnectionTest extends GrpcTestCase
{
    private const ENHANCE_YOUR_CALM = 11;
    private const EVERY_STREAM = 0x7fff_ffff;

    public function testTimesMayBeEndless(): void
    {
        $times = 'deadline: INF, writeTimeout: INF, header: new \Weft\Http\HeaderLimits(timeout: INF), body: new \Weft\Http\BodyLimits(timeout: INF), keepalive: new \Weft\Http\Keepalive(INF, INF, INF, INF, INF, INF)';
        $server = $this->serve(arguments: ", new ServerOptions(limits: new Limits(methods: ['api.Users' => new \Weft\Grpc\MethodLimits(timeout: INF)])), connections: new \Weft\Http\Limits($times)");

        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228, '-H', 'grpc-timeout: 99999999H'));
        self::assertSame([0, "ended\n"], $server->stop());
    }

    public function testAClientThatTakesNothingOfItsAnswersIsDisconnectedAndItsHandlersAreCancelled(): void
    {
        $server = $this->serve(
            "'list' => static function () { try { while (true) { yield new User(1, str_repeat('x', 60_000)); } } finally { say('cancelled'); } }",
            ', new ServerOptions(limits: new Limits(messages: new MessageLimits(writeTimeout: 0.5)))',
        );
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::LIST) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));

        self::assertTrue($wire->isClosed());
        self::assertTrue($server->awaitLog('cancelled'));
    }

    public function testAStreamThatHasNothingToSendIsNotTakenForOneThatIsNotRead(): void
    {
        $server = $this->serve("'list' => static function () { yield new User(1); delay(2.0); yield new User(2); }", ', new ServerOptions(limits: new Limits(messages: new MessageLimits(writeTimeout: 0.5)))');

        self::assertCount(2, $server->post(self::LIST, self::EMPTY_MESSAGE)->messages());
    }

    public function testAClientThatPingsTooOftenIsToldToCalmDownAndDisconnected(): void
    {
        $wire = new Wire($this->serve()->connect());
        for ($i = 0; $i < 4; $i++) {
            $wire->send(self::ping("number $i"));
        }

        [, , $payload] = $wire->await(Wire::GOAWAY);

        self::assertSame(['last' => self::EVERY_STREAM, 'error' => self::ENHANCE_YOUR_CALM], unpack('Nlast/Nerror', $payload));
        self::assertSame('too_many_pings', substr($payload, 8));
        self::assertTrue($wire->isClosed());
    }

    public function testAClientMayPingAFewTimesAndAgainAfterEveryAnswer(): void
    {
        $server = $this->serve();
        $wire = new Wire($server->connect());
        for ($stream = 1; $stream < 20; $stream += 2) {
            for ($i = 0; $i < 3; $i++) {
                $wire->send(self::ping("number $i"));
                self::assertSame("number $i", $this->pong($wire));
            }
            $wire->send(Wire::call($stream, self::GET) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, self::USER_228));
            self::assertNotNull($wire->await(Wire::DATA));
        }
        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
    }

    public function testAnHttpServerLetsItsClientsPing(): void
    {
        $server = $this->serve(more: '$app->http("127.0.0.1:0")->get("/", static fn() => Response::text("hello"));');
        $wire = new Wire($server->connect());
        for ($i = 0; $i < 10; $i++) {
            $wire->send(self::ping("number $i"));
            self::assertSame("number $i", $this->pong($wire));
        }
    }

    public function testASilentClientIsAskedAndDisconnectedWhenItDoesNotAnswer(): void
    {
        $server = $this->serve(arguments: ', connections: new \Weft\Http\Limits(keepalive: new \Weft\Http\Keepalive(pingInterval: 0.5, pingTimeout: 0.5))');
        $start = microtime(true);
        $wire = new Wire($server->connect());
        $wire->send(Wire::frame(Wire::SETTINGS, Wire::ACK));

        self::assertNotNull($wire->await(Wire::PING));
        self::assertTrue($wire->isClosed());
        self::assertGreaterThanOrEqual(1.0, microtime(true) - $start, 'half a second of silence, and as long for the answer');
        self::assertLessThan(30.0, microtime(true) - $start);
    }

    public function testASilentClientThatAnswersStaysConnectedAndItsCallGoesOn(): void
    {
        $server = $this->serve(
            '"list" => static function () { delay(2.5); yield new User(7); }',
            ', connections: new \Weft\Http\Limits(keepalive: new \Weft\Http\Keepalive(pingInterval: 0.5, pingTimeout: 0.5))',
        );
        // A busy machine may take longer than half a second to answer one of the pings.
        for ($data = null, $tries = 0; $data === null && $tries < 8; $tries++) {
            $wire = new Wire($server->connect());
            $wire->send(Wire::call(1, self::LIST) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));
            for ($i = 0; $i < 3 && ($ping = $wire->await(Wire::PING)) !== null; $i++) {
                $wire->send(Wire::frame(Wire::PING, Wire::ACK, 0, $ping[2]));
            }
            $data = $wire->await(Wire::DATA);
        }

        self::assertSame(self::frame("\x08\x07"), $data[2] ?? null);
    }

    public function testAnOldConnectionSaysGoodbyeTwiceAndFinishesWhatIsInFlight(): void
    {
        $server = $this->serve(
            '"list" => static function () { yield new User(1); gate("last"); yield new User(7); }',
            ', connections: new \Weft\Http\Limits(keepalive: new \Weft\Http\Keepalive(maxAge: 1.0))',
        );
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::LIST) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));
        self::assertNotNull($wire->await(Wire::DATA));

        [, , $first] = $wire->await(Wire::GOAWAY);
        [, , $ping] = $wire->await(Wire::PING);
        $wire->send(Wire::frame(Wire::PING, Wire::ACK, 0, $ping));
        [, , $second] = $wire->await(Wire::GOAWAY);

        self::assertSame(['last' => self::EVERY_STREAM, 'error' => 0], unpack('Nlast/Nerror', $first));
        self::assertSame(['last' => 1, 'error' => 0], unpack('Nlast/Nerror', $second));
        $server->open('last');
        self::assertSame(self::frame("\x08\x07"), $wire->await(Wire::DATA)[2]);
        self::assertTrue($wire->isClosed());
        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
    }

    public function testACallInFlightOnAConnectionBeyondItsAgeIsCancelledAfterTheGrace(): void
    {
        $server = $this->serve(
            '"list" => static function () { yield new User(1); try { delay(60); } finally { say("cancelled"); } }',
            ', connections: new \Weft\Http\Limits(keepalive: new \Weft\Http\Keepalive(maxAge: 0.5, ageGrace: 0.5))',
        );
        // On a busy machine the connection may be too old before the call begins.
        Timing::until(static function () use ($server, &$wire): bool {
            $wire = new Wire($server->connect());
            $wire->send(Wire::call(1, self::LIST) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));

            return $wire->await(Wire::DATA) !== null;
        }, 'a call is in flight');

        self::assertTrue($wire->isClosed());
        self::assertTrue($server->awaitLog("cancelled\n"));
    }

    private static function ping(string $payload): string
    {
        return Wire::frame(Wire::PING, 0, 0, $payload);
    }

    private function pong(Wire $wire): ?string
    {
        return $wire->await(Wire::PING)[2] ?? null;
    }
}
