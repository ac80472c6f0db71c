<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;

/** RFC 7692 */
final class WebSocketCompressionTest extends HttpTestCase
{
    private const ECHO = <<<'PHP'
        $routes->websocket("/", static function (WebSocket $socket) {
            foreach ($socket as $message) {
                $message->isBinary ? $socket->sendBinary($message->data) : $socket->send($message->data);
            }
        }, new WebSocketOptions(messageBytes: 1000000, compress: true));
        PHP;
    private const OFFER = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
    /** First bytes of frames: the last one of a text, and of a compressed text. */
    private const TEXT = 0x81;
    private const COMPRESSED_TEXT = 0xc1;

    public function testItIsAgreedOnWhereBothWantIt(): void
    {
        $server = $this->serve(self::ECHO . '$routes->websocket("/plain", static fn(WebSocket $socket) => $socket->send(str_repeat("x", 1000)));');
        $answer = 'permessage-deflate; server_no_context_takeover; client_no_context_takeover';

        self::assertSame($answer, self::field(WebSocketClient::open($server, more: self::OFFER)->answer, 'sec-websocket-extensions'));
        self::assertSame('', self::field(WebSocketClient::open($server)->answer, 'sec-websocket-extensions'));
        $client = WebSocketClient::open($server, '/plain', self::OFFER);
        self::assertSame('', self::field($client->answer, 'sec-websocket-extensions'));
        self::assertSame([self::TEXT, str_repeat('x', 1000)], $client->frameRead());
    }

    public function testLongMessagesAreCompressedAndShortOnesAreNot(): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO), more: self::OFFER);

        foreach ([1, 255, 256, 10_000, 1_000_000] as $length) {
            $text = substr(str_repeat('to be or not to be, ', intdiv($length, 20) + 1), 0, $length);
            $client->text($text);
            [$first, $data] = $client->frameRead() ?? self::fail("nothing came back for $length bytes");
            self::assertSame($length < 256 ? self::TEXT : self::COMPRESSED_TEXT, $first);
            self::assertSame($text, $length < 256 ? $data : self::inflated($data));
            self::assertLessThan(max(60, $length / 50), $length < 256 ? 0 : \strlen($data));
        }
    }

    public function testAClientThatReadsWithASmallWindowIsSentWhatFitsIt(): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO), more: "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=9\r\n");
        self::assertStringEndsWith('; server_max_window_bits=9', self::field($client->answer, 'sec-websocket-extensions'));
        $text = random_bytes(400);
        $text = bin2hex($text) . str_repeat('a', 2000) . bin2hex($text);

        $client->text($text);

        [$first, $data] = $client->frameRead() ?? self::fail('nothing came back');
        self::assertSame([self::COMPRESSED_TEXT, $text], [$first, self::inflated($data, 9)]);
    }

    public function testCompressedMessagesOfTheClientAreReadWholeAndInFragments(): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO), more: self::OFFER);
        $text = str_repeat('grün ', 40);
        $data = self::deflated($text);

        $client->write(WebSocketClient::frame(0x41, $data));
        self::assertSame([self::TEXT, $text], $client->frameRead());
        $client->write(WebSocketClient::frame(0x41, substr($data, 0, 5), false) . WebSocketClient::frame(9, '?') . WebSocketClient::frame(0, substr($data, 5)));
        self::assertSame([0x8a, '?'], $client->frameRead());
        self::assertSame([self::TEXT, $text], $client->frameRead());
    }

    /** RFC 7692 §7.2.1 allows final blocks of DEFLATE, and others after them. */
    public function testBlocksAfterAFinalOneBelongToTheMessage(): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO), more: self::OFFER);

        $client->write(WebSocketClient::frame(0x41, gzdeflate('the first half, ') . self::deflated('and the second')));
        self::assertSame([self::TEXT, 'the first half, and the second'], $client->frameRead());
        $client->write(WebSocketClient::frame(0x41, gzdeflate('a final block') . "\0"));
        self::assertSame([self::TEXT, 'a final block'], $client->frameRead());
    }

    public function testABombClosesTheWebSocketBeforeItTakesMemory(): void
    {
        $server = $this->serve(self::ECHO);
        $client = WebSocketClient::open($server, more: self::OFFER);
        $client->text('x');
        $client->read();
        $before = $server->resident();

        $client->write(WebSocketClient::frame(0x42, self::deflated(str_repeat("\0", 100_000_000))));

        self::assertSame(1009, $client->closeCode());
        self::assertLessThan(8_192, $server->resident() - $before, 'KiB');
    }

    /** @dataProvider violations */
    #[DataProvider('violations')]
    public function testAnUnreadableFrameClosesTheWebSocket(int $code, string $bytes): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO), more: self::OFFER);

        $client->write($bytes);

        self::assertSame($code, $client->closeCode());
    }

    /** @return iterable<string, array{int, string}> */
    public static function violations(): iterable
    {
        yield 'no deflate' => [1007, WebSocketClient::frame(0x41, "\xff\xff\xff\xff")];
        yield 'text that is not UTF-8' => [1007, WebSocketClient::frame(0x41, self::deflated("\xff"))];
        yield 'a compressed ping' => [1002, WebSocketClient::frame(0x49, 'x')];
        yield 'a compressed continuation' => [1002, WebSocketClient::frame(1, 'x', false) . WebSocketClient::frame(0x40, 'x')];
    }

    private static function deflated(string $text): string
    {
        return substr((string) deflate_add(deflate_init(\ZLIB_ENCODING_RAW), $text, \ZLIB_SYNC_FLUSH), 0, -4);
    }

    private static function inflated(string $data, int $window = 15): string
    {
        return (string) inflate_add(inflate_init(\ZLIB_ENCODING_RAW, ['window' => $window]), "$data\0\0\xff\xff", \ZLIB_SYNC_FLUSH);
    }
}
