<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;

/** A client that breaks the rules of HTTP/2 harms nobody but itself. */
final class Http2AbuseTest extends HttpTestCase
{
    private const ROUTES = '$routes->get("/", static function () { delay(0.001); return Response::text("hello"); });';
    private const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    private const DATA = 0;
    private const HEADERS = 1;
    private const PRIORITY = 2;
    private const RST_STREAM = 3;
    private const SETTINGS = 4;
    private const PING = 6;
    private const WINDOW_UPDATE = 8;
    private const CONTINUATION = 9;
    private const PADDED = 8;
    private const END_STREAM = 1;
    private const END_HEADERS = 4;
    /** Kibibytes that a server may have grown by under attack. */
    private const GROWTH = 24_576;
    /** Seconds of CPU that all rounds of an attack may cost it, built for debugging: a good client waits no longer than that for the attack. */
    private const CPU = 6.0;

    /** @dataProvider attacks */
    #[DataProvider('attacks')]
    public function testAGoodClientIsServedDuringTheAttackAndMemoryStaysBounded(\Closure $attack): void
    {
        $server = $this->serve(self::ROUTES);
        self::assertStatus(200, $server->get('/'));
        $before = $server->resident();
        $used = $server->cpu();
        for ($round = 0; $round < 5; $round++) {
            $socket = $server->connect();
            stream_set_blocking($socket, false);
            self::send($socket, self::PREFACE . self::frame(self::SETTINGS, 0, 0));
            self::send($socket, $attack());
            self::assertStatus(200, $server->get('/'));
            $sockets[] = $socket;
        }

        self::assertLessThan($before + self::GROWTH, $server->resident());
        self::assertLessThan(self::CPU, $server->cpu() - $used);
        self::assertSame('hello', self::bodyOf($server->get('/', '--http2-prior-knowledge')));
    }

    /** @return iterable<string, array{\Closure(): string}> */
    public static function attacks(): iterable
    {
        // HPACK: :method GET, :scheme http, :path /, :authority a
        $request = "\x82\x86\x84\x41\x01a";
        yield 'rapid reset' => [static function () use ($request): string {
            $bytes = '';
            for ($stream = 1; $stream < 40_000; $stream += 2) {
                $bytes .= self::frame(self::HEADERS, self::END_STREAM | self::END_HEADERS, $stream, $request) . self::frame(self::RST_STREAM, 0, $stream, pack('N', 8));
            }

            return $bytes;
        }];
        yield 'streams that are never read' => [static function () use ($request): string {
            $bytes = self::frame(self::SETTINGS, 0, 0, pack('nN', 4, 0));
            for ($stream = 1; $stream < 20_000; $stream += 2) {
                $bytes .= self::frame(self::HEADERS, self::END_STREAM | self::END_HEADERS, $stream, $request);
            }

            return $bytes;
        }];
        yield 'CONTINUATION without an end' => [static fn(): string => self::frame(self::HEADERS, self::END_STREAM, 1, $request)
            . str_repeat(self::frame(self::CONTINUATION, 0, 1, str_repeat("\x00\x01x\x01y", 3_000)), 1_000)];
        yield 'empty CONTINUATION without an end' => [static fn(): string => self::frame(self::HEADERS, self::END_STREAM, 1, $request)
            . str_repeat(self::frame(self::CONTINUATION, 0, 1), 200_000)];
        yield 'a flood of SETTINGS' => [static fn(): string => str_repeat(self::frame(self::SETTINGS, 0, 0, pack('nN', 1, 4096)), 200_000)];
        yield 'a flood of PING' => [static fn(): string => str_repeat(self::frame(self::PING, 0, 0, '12345678'), 200_000)];
        yield 'a flood of empty DATA' => [static fn(): string => self::frame(self::HEADERS, self::END_HEADERS, 1, "\x83\x86\x84\x41\x01a") . str_repeat(self::frame(self::DATA, 0, 1), 200_000)];
        yield 'a flood of DATA that is all padding' => [static fn(): string => self::frame(self::HEADERS, self::END_HEADERS, 1, "\x83\x86\x84\x41\x01a") . str_repeat(self::frame(self::DATA, self::PADDED, 1, "\xff" . str_repeat("\0", 255)), 20_000)];
        yield 'a flood of PRIORITY' => [static fn(): string => str_repeat(self::frame(self::PRIORITY, 0, 3, pack('NC', 0, 16)), 200_000)];
        yield 'a flood of WINDOW_UPDATE' => [static fn(): string => str_repeat(self::frame(self::WINDOW_UPDATE, 0, 0, pack('N', 1)), 200_000)];
        yield 'a flood of frames nobody knows' => [static fn(): string => str_repeat(self::frame(0xbb, 0, 0, str_repeat('x', 100)), 50_000)];
        yield 'a flood of RST_STREAM' => [static function () use ($request): string {
            return self::frame(self::HEADERS, self::END_STREAM | self::END_HEADERS, 1, $request) . str_repeat(self::frame(self::RST_STREAM, 0, 1, pack('N', 8)), 200_000);
        }];
        yield 'streams the server must reset' => [static function () use ($request): string {
            $bytes = '';
            for ($stream = 1; $stream < 40_000; $stream += 2) {
                // A window update of nothing is an error of the stream (RFC 9113 §6.9).
                $bytes .= self::frame(self::HEADERS, self::END_STREAM | self::END_HEADERS, $stream, $request) . self::frame(self::WINDOW_UPDATE, 0, $stream, pack('N', 0));
            }

            return $bytes;
        }];
        yield 'a header bomb' => [static function () use ($request): string {
            // One field of 4,000 bytes put into the table, then named 10,000 times by one byte each.
            $field = "\x40\x01x" . "\x7f" . self::integer(4_000 - 127) . str_repeat('a', 4_000);
            $bytes = '';
            for ($stream = 1; $stream < 100; $stream += 2) {
                $bytes .= self::frame(self::HEADERS, self::END_STREAM | self::END_HEADERS, $stream, $request . ($stream === 1 ? $field : '') . str_repeat("\xbe", 10_000));
            }

            return $bytes;
        }];
    }

    /** @dataProvider windows */
    #[DataProvider('windows')]
    public function testAClientThatTakesNothingOfItsAnswerIsDisconnected(string $settings): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::text(str_repeat("x", 1 << 20)));', ', limits: new Limits(writeTimeout: 0.5)');
        $socket = $server->connect();
        $from = microtime(true);
        fwrite($socket, self::PREFACE . $settings . self::frame(self::HEADERS, self::END_STREAM | self::END_HEADERS, 1, "\x82\x86\x84\x41\x01a"));

        ServerProcess::readAll($socket);

        self::assertTrue(feof($socket));
        self::assertLessThan(30.0, microtime(true) - $from, 'the default of writeTimeout');
        self::assertSame(1 << 20, \strlen(self::bodyOf($server->get('/', '--http2-prior-knowledge'))));
    }

    /** @return iterable<string, array{string}> */
    public static function windows(): iterable
    {
        yield 'it takes what the standard lets it have' => [self::frame(self::SETTINGS, 0, 0)];
        yield 'it takes nothing at all' => [self::frame(self::SETTINGS, 0, 0, pack('nN', 4, 0))];
    }

    public function testAStreamThatHasNothingToSayIsNotTakenForOneThatIsNotRead(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::stream(static function (BodyWriter $out) { $out->write("one,"); delay(2.5); $out->write("two"); }));', ', limits: new Limits(writeTimeout: 0.5)');

        self::assertSame('one,two', self::bodyOf($server->get('/', '--http2-prior-knowledge')));
    }

    private static function frame(int $type, int $flags, int $stream, string $payload = ''): string
    {
        return substr(pack('N', \strlen($payload)), 1) . pack('CCN', $type, $flags, $stream) . $payload;
    }

    /** RFC 7541 §5.1, what follows the prefix. */
    private static function integer(int $value): string
    {
        $bytes = '';
        for (; $value >= 128; $value >>= 7) {
            $bytes .= \chr($value & 127 | 128);
        }

        return $bytes . \chr($value);
    }

    /**
     * As much as the server takes within two seconds; it may well hang up, which is the point.
     *
     * @param resource $socket
     */
    private static function send($socket, string $bytes): void
    {
        $deadline = microtime(true) + 2.0;
        while ($bytes !== '' && microtime(true) < $deadline) {
            $read = null;
            $write = [$socket];
            $none = null;
            if (stream_select($read, $write, $none, 0, 100_000) === 0) {
                continue;
            }
            $sent = @fwrite($socket, substr($bytes, 0, 65_536));
            if ($sent === false || $sent === 0) {
                return;
            }
            $bytes = substr($bytes, $sent);
        }
    }
}
