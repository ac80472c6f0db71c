<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Grpc\Wire;

/** RFC 8441 */
final class WebSocketOverHttp2Test extends HttpTestCase
{
    private const ROUTES = <<<'PHP'
        $routes->get("/page", static fn() => Response::text("a page"));
        $routes->websocket("/{name}", static function (WebSocket $socket, Request $request, string $name) {
            $socket->send("{$request->method()} $name over {$request->protocol()} at {$request->host()}");
            foreach ($socket as $message) {
                $socket->send($message->data);
            }
            fprintf(STDERR, "closed {$socket->closeCode()} {$socket->closeReason()};");
        });
        PHP;
    private const RST_STREAM = 3;
    /** What `:status: 200` is as an index (RFC 7541 appendix A). */
    private const OK = "\x88";

    public function testStreamsOfOneConnectionAreWebSocketsBesideRequests(): void
    {
        $server = $this->serve(self::ROUTES);
        $wire = new Wire($server->connect());
        [, , $settings] = $wire->await(Wire::SETTINGS);
        self::assertStringContainsString("\0\x08\0\0\0\x01", $settings, 'SETTINGS_ENABLE_CONNECT_PROTOCOL');

        foreach ([1 => 'ann', 3 => 'bob'] as $stream => $name) {
            $wire->send(WebSocketClient::connect($stream, "/$name"));
            [, $answered, $head] = $wire->await(Wire::HEADERS);
            self::assertSame([$stream, self::OK], [$answered, $head[0]]);
            self::assertSame([$stream, "\x81" . \chr(\strlen("GET $name over 2 at test")) . "GET $name over 2 at test"], self::data($wire));
        }
        $wire->send(Wire::frame(Wire::DATA, 0, 1, WebSocketClient::frame(1, 'one')));
        self::assertSame([1, "\x81\x03one"], self::data($wire));
        $wire->send(Wire::frame(Wire::DATA, 0, 3, WebSocketClient::frame(1, 'three')));
        self::assertSame([3, "\x81\x05three"], self::data($wire));
        $wire->send(Wire::head(5, [':method' => 'GET', ':scheme' => 'http', ':path' => '/page', ':authority' => 'test'], Wire::END_STREAM));
        self::assertSame([5, 'a page'], self::data($wire));

        $wire->send(Wire::frame(Wire::DATA, 0, 1, WebSocketClient::frame(8, pack('n', 3001) . 'enough')));
        self::assertSame([1, "\x88\x08" . pack('n', 3001) . 'enough'], self::data($wire));
        self::assertTrue($server->awaitLog('closed 3001 enough;'));
    }

    public function testAStreamThatIsResetClosesItsWebSocketOnly(): void
    {
        $server = $this->serve(self::ROUTES);
        $wire = new Wire($server->connect());
        foreach ([1, 3] as $stream) {
            $wire->send(WebSocketClient::connect($stream, '/ann'));
            self::data($wire);
        }

        $wire->send(Wire::frame(self::RST_STREAM, 0, 1, pack('N', 8)));

        self::assertTrue($server->awaitLog('closed 1006'));
        $wire->send(Wire::frame(Wire::DATA, 0, 3, WebSocketClient::frame(1, 'still here')));
        self::assertSame([3, "\x81\x0astill here"], self::data($wire));
    }

    public function testAServerThatStopsSaysSoOnEveryStream(): void
    {
        $server = $this->serve(self::ROUTES);
        $wire = new Wire($server->connect());
        $wire->send(WebSocketClient::connect(1, '/ann'));
        self::data($wire);

        $server->signal();

        [, $frame] = self::data($wire) ?? self::fail('nothing was said');
        self::assertSame(["\x88", pack('n', 1001)], [$frame[0], substr($frame, 2, 2)]);
        $wire->send(Wire::frame(Wire::DATA, Wire::END_STREAM, 1, WebSocketClient::frame(8, pack('n', 1001))));
        self::assertTrue($wire->isClosed());
        self::assertSame([0, "ended\n"], $server->stop());
    }

    /** @dataProvider others */
    #[DataProvider('others')]
    public function testAConnectRequestWithoutWebSocketIsRefused(string $path, string $protocol): void
    {
        $server = $this->serve(self::ROUTES);
        $wire = new Wire($server->connect());

        $wire->send(WebSocketClient::connect(1, $path, $protocol));

        [, , $head] = $wire->await(Wire::HEADERS);
        self::assertNotSame(self::OK, $head[0]);
        self::assertSame('a page', self::bodyOf($server->get('/page')));
    }

    /** @return iterable<string, array{string, string}> */
    public static function others(): iterable
    {
        yield 'a page' => ['/page', 'websocket'];
        yield 'another protocol' => ['/ann', 'connect-udp'];
    }

    /** @return array{int, string}|null stream and payload of the next frame with data */
    private static function data(Wire $wire): ?array
    {
        do {
            $frame = $wire->await(Wire::DATA);
        } while ($frame !== null && $frame[2] === '');

        return $frame === null ? null : [$frame[1], $frame[2]];
    }
}
