<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Http\Response;
use Weft\Http\ServerSentEvent;
use Weft\Tests\Timing;

/** Server-sent events. BrowserTest has the judgement of a browser. */
final class EventsTest extends HttpTestCase
{
    private const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

    public function testAnEventIsWrittenLineByLine(): void
    {
        self::assertSame("data: a\n\n", (string) new ServerSentEvent('a'));
        self::assertSame("data: \n\n", (string) new ServerSentEvent(''));
        self::assertSame("data: a\ndata: b\ndata: c\ndata: \n\n", (string) new ServerSentEvent("a\nb\r\nc\r"));
        self::assertSame("id: 7\nevent: news\nretry: 1500\ndata: ä\n\n", (string) new ServerSentEvent('ä', 'news', '7', 1.5));
        self::assertSame("id: \ndata: \n\n", (string) new ServerSentEvent('', id: ''));
    }

    public function testAFieldThatWouldForgeAnotherEventIsRefused(): void
    {
        foreach ([['x', "a\ndata: b"], ['x', "a\r"], ['x', '', "1\n"], ['x', '', "1\0"], ["\xff"], ['x', "\xff"], ['x', '', null, -1.0], ['x', '', null, \NAN], ['x', '', null, 2e9]] as $arguments) {
            try {
                new ServerSentEvent(...$arguments);
                self::fail('was taken: ' . serialize($arguments));
            } catch (\ValueError $error) {
                self::assertNotSame('', $error->getMessage());
                isset($arguments[3]) && self::assertMatchesRegularExpression('/^The retry of an event must be 0 to 1,000,000,000 seconds, got (-1|NAN|2000000000|2\.0E\+9)$/', $error->getMessage());
            }
        }
    }

    /** Any data comes out at the other end as it went in, apart from the kinds of line breaks. */
    public function testEveryTextIsReadAsItWasSent(): void
    {
        $random = new \Random\Randomizer(new \Random\Engine\Mt19937(7));
        $letters = ["\n", "\r", 'a', ':', ' ', 'data', 'ä', "\0", 'event: x', "\t", "\u{feff}"];
        for ($round = 0; $round < 2_000; $round++) {
            $text = '';
            for ($i = $random->getInt(0, 12); $i > 0; $i--) {
                $text .= $letters[$random->getInt(0, \count($letters) - 1)];
            }

            self::assertSame([['message', str_replace(["\r\n", "\r"], "\n", $text), null]], self::parse((string) new ServerSentEvent($text)));
        }
    }

    public function testEventsAreSentAsTheyCome(): void
    {
        $server = $this->serve('$routes->get("/", static fn(Request $r) => Response::events((static function () use ($r) { yield "after " . $r->header("last-event-id"); gate("second"); yield new ServerSentEvent("two\nlines", "news", "2"); })()));');
        $socket = $server->connect();
        fwrite($socket, str_replace("\r\n\r\n", "\r\nLast-Event-ID: 41\r\n\r\n", self::REQUEST));

        $first = ServerProcess::readUntil($socket, "data: after 41\n\n\r\n");

        self::assertStatus(200, $first);
        self::assertStringContainsString("content-type: text/event-stream\r\n", $first);
        self::assertStringContainsString("cache-control: no-store\r\n", $first);
        $server->open('second');
        self::assertStringContainsString("id: 2\nevent: news\ndata: two\ndata: lines\n\n", ServerProcess::readAll($socket));
        self::assertStringContainsString("data: after 41\n\n", $server->curl('/', '--http2-prior-knowledge', '-H', 'Last-Event-ID: 41')[1]);
    }

    public function testAFunctionSendsEventsOrReturnsThem(): void
    {
        $server = $this->serve('$routes->get("/sends", static fn() => Response::events(static function (EventWriter $out) { $out->send("a"); $out->send(new ServerSentEvent("b")); }))->get("/returns", static fn() => Response::events(static fn() => ["c"]))->get("/yields", static fn() => Response::events(static function () { yield "d"; }));');

        self::assertSame("data: a\n\ndata: b\n\n", $server->curl('/sends')[1]);
        self::assertSame("data: c\n\n", $server->curl('/returns')[1]);
        self::assertSame("data: d\n\n", $server->curl('/yields')[1]);
    }

    /** @dataProvider protocols */
    #[DataProvider('protocols')]
    public function testSilenceIsFilledWithHeartbeats(string $protocol): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::events(static function () { yield "a"; gate("b"); yield "b"; }, heartbeat: 0.2));');

        $curl = $server->follow('/', $protocol);
        $silence = $curl->readUntil("data: a\n\n:\n\n:\n\n:\n\n");
        $server->open('b');

        self::assertMatchesRegularExpression('/^data: a\n\n(:\n\n){3,}data: b\n\n$/', $silence . $curl->end());
    }

    /** @dataProvider protocols */
    #[DataProvider('protocols')]
    public function testAClientThatGoesAwayEndsTheTaskThatMakesTheEvents(string $protocol): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::events(static function () { try { yield "a"; delay(60); } finally { fprintf(STDERR, "ended;"); } }));');

        $curl = $server->follow('/', $protocol);
        $curl->readUntil('data: a');
        $curl->kill();

        self::assertTrue($server->awaitLog('ended;'));
    }

    /** @return iterable<array{string}> */
    public static function protocols(): iterable
    {
        yield 'HTTP/1.1' => ['--http1.1'];
        yield 'HTTP/2' => ['--http2-prior-knowledge'];
    }

    /** @dataProvider protocols */
    #[DataProvider('protocols')]
    public function testHeadOfAStreamIsAnsweredAndNothingGoesOn(string $protocol): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::events(static function () { try { yield "a"; delay(60); } finally { fprintf(STDERR, "ended;"); } }));');

        self::assertStatus(200, $server->get('/', '--head', $protocol));

        self::assertTrue($server->awaitLog('ended;'));
    }

    public function testAnyStreamEndsWithItsClientUnlessItMustNot(): void
    {
        $body = 'static function (BodyWriter $out) { $out->write("a"); try { gate("goes on"); fprintf(STDERR, "went on;"); } finally { fprintf(STDERR, "ended;"); } }';
        $leave = static function (ServerProcess $server): void {
            $curl = $server->follow('/');
            $curl->readUntil('a');
            $curl->kill();
        };
        $server = $this->serve("\$routes->get('/', static fn() => Response::stream($body));");
        $leave($server);
        self::assertTrue($server->awaitLog('ended;'));
        self::assertStringNotContainsString('went on;', $server->log());

        $server = $this->serve("\$routes->get('/', static fn() => Response::stream($body));", ', cancelOnDisconnect: false');
        $leave($server);
        // Once it answers again it has heard that the first client has gone.
        self::assertStatus(404, $server->get('/other'));
        $server->open('goes on');
        self::assertTrue($server->awaitLog('went on;'));
    }

    public function testAServerThatStopsEndsTheStreamAndDoesNotWaitForIt(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::events(static function () { while (true) { yield "tick"; delay(0.05); } }));');
        $socket = $server->connect();
        fwrite($socket, self::REQUEST);
        self::assertNotSame('', fread($socket, 1));

        $from = microtime(true);
        $server->signal();

        self::assertStringEndsWith("0\r\n\r\n", ServerProcess::readAll($socket), 'the stream has ended as it should');
        self::assertSame([0, "ended\n"], $server->stop());
        self::assertLessThan(30.0, microtime(true) - $from, 'the grace of an App');
    }

    public function testAThousandSilentClientsLiveAndAreCounted(): void
    {
        $server = $this->serve('$open = new ArrayObject(); $routes->get("/", static fn() => Response::events(static function () use ($open) { $open["n"] = ($open["n"] ?? 0) + 1; try { yield "a"; delay(600); } finally { $open["n"]--; } }, heartbeat: 0.5))->get("/open", static fn() => Response::text((string) ($open["n"] ?? 0)));');
        $sockets = [];
        for ($i = 0; $i < 1_000; $i++) {
            $sockets[] = $socket = $server->connect();
            fwrite($socket, self::REQUEST);
        }

        Timing::until(static fn(): bool => self::bodyOf($server->get('/open')) === '1000', 'all of them are there');
        array_map(fclose(...), $sockets);
        Timing::until(static fn(): bool => self::bodyOf($server->get('/open')) === '0', 'all of them have gone');
    }

    public function testAHeartbeatIsNotNegative(): void
    {
        $this->expectException(\ValueError::class);

        Response::events([], heartbeat: -1.0);
    }

    /**
     * As HTML §9.2.6 has it, for what this side can send.
     *
     * @return list<array{string, string, string|null}> type, data, id
     */
    private static function parse(string $stream): array
    {
        $events = [];
        [$type, $data, $id] = ['message', null, null];
        foreach (preg_split('/\r\n|\r|\n/', $stream) as $line) {
            if ($line === '') {
                if ($data !== null) {
                    $events[] = [$type, $data, $id];
                }
                [$type, $data] = ['message', null];
                continue;
            }
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $value = str_starts_with($value, ' ') ? substr($value, 1) : $value;
            match ($name) {
                'data' => $data = $data === null ? $value : "$data\n$value",
                'event' => $type = $value,
                'id' => $id = $value,
                default => self::fail("unexpected line: $line"),
            };
        }

        return $events;
    }
}
