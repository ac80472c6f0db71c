<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;

/** Frames that ask for nothing have an allowance of ours each: the connection ends with ENHANCE_YOUR_CALM, and that is counted. */
final class Http2FloodTest extends HttpTestCase
{
    private const CALM = 0xb;

    /** @dataProvider floods */
    #[DataProvider('floods')]
    public function testAFloodEndsItsConnectionAndIsCounted(string $reason, string $flood): void
    {
        $server = $this->serve('$app->metrics("127.0.0.1:0"); $routes->get("/", static fn() => Response::text("hello"))->post("/", static function (Request $request) { $request->body(); return Response::text(""); });');
        $socket = $server->connect();

        @fwrite($socket, Http2Wire::PREFACE . $flood);
        $answer = ServerProcess::readAll($socket);

        $goodbyes = array_values(array_filter(Http2Wire::parse($answer), static fn(array $frame): bool => $frame[0] === Http2Wire::GOAWAY));
        self::assertNotSame([], $goodbyes);
        self::assertSame(self::CALM, unpack('N', substr($goodbyes[0][2], 4, 4))[1]);
        self::assertSame($reason, substr($goodbyes[0][2], 8));
        self::assertTrue($server->awaitLog('flood'));
        self::assertMatchesRegularExpression('~HTTP server refused 1 × flood, last from 127\.0\.0\.1:\d+~', $server->log());
        self::assertStringContainsString('weft_http_refused_total{reason="flood"} 1', self::metrics($server));
        self::assertSame('hello', self::bodyOf($server->get('/', '--http2-prior-knowledge')));
    }

    /** @return iterable<string, array{string, string}> */
    public static function floods(): iterable
    {
        $post = Http2Wire::frame(Http2Wire::HEADERS, Http2Wire::END_HEADERS, 1, Http2Wire::POST);
        yield 'SETTINGS' => ['too_many_settings', str_repeat(Http2Wire::frame(Http2Wire::SETTINGS, 0, 0, pack('nN', 1, 4096)), 300)];
        yield 'PING' => ['too_many_pings', str_repeat(Http2Wire::frame(Http2Wire::PING, 0, 0, '12345678'), 5_000)];
        yield 'WINDOW_UPDATE' => ['too_many_window_updates', str_repeat(Http2Wire::frame(Http2Wire::WINDOW_UPDATE, 0, 0, pack('N', 1)), 5_000)];
        yield 'PRIORITY' => ['too_many_priorities', str_repeat(Http2Wire::frame(Http2Wire::PRIORITY, 0, 3, pack('NC', 0, 16)), 3_000)];
        yield 'empty DATA' => ['too_many_empty_data_frames', $post . str_repeat(Http2Wire::frame(Http2Wire::DATA, 0, 1), 3_000)];
        yield 'DATA that is all padding' => ['too_many_empty_data_frames', $post . str_repeat(Http2Wire::frame(Http2Wire::DATA, Http2Wire::PADDED, 1, "\x08" . str_repeat("\0", 8)), 3_000)];
        yield 'unknown frames' => ['too_many_unknown_frames', str_repeat(Http2Wire::frame(0xbb, 0, 0, 'x'), 3_000)];
        $resets = '';
        for ($stream = 1; $stream < 4_000; $stream += 2) {
            $resets .= Http2Wire::get($stream) . Http2Wire::frame(Http2Wire::RST_STREAM, 0, $stream, pack('N', 8));
        }
        yield 'rapid reset' => ['too_many_resets', $resets];
        yield 'CONTINUATION' => ['too_many_continuations', Http2Wire::frame(Http2Wire::HEADERS, Http2Wire::END_STREAM, 1, Http2Wire::GET) . str_repeat(Http2Wire::frame(Http2Wire::CONTINUATION, 0, 1), 1_000)];
    }
}
