<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Http\WebSocketOptions;
use Weft\Tests\Timing;

final class WebSocketTest extends HttpTestCase
{
    private const ECHO = <<<'PHP'
        $routes->websocket("/", static function (WebSocket $socket) {
            foreach ($socket as $message) {
                $message->isBinary ? $socket->sendBinary($message->data) : $socket->send($message->data);
            }
            fprintf(STDERR, "closed {$socket->closeCode()} {$socket->closeReason()};");
        }, new WebSocketOptions(messageBytes: 1000000));
        PHP;

    private const FEED = <<<'PHP'
        $feed = static function (WebSocket $socket): void {
            try {
                fprintf(STDERR, "feeding;");
                $socket->send((new Weft\Runtime\Channel(1))->receive());
            } catch (Throwable $error) {
                fprintf(STDERR, $error->getMessage());
                throw $error;
            } finally {
                fprintf(STDERR, "feed ended;");
            }
        };
        PHP;

    public function testAHandshakeIsAnsweredAsTheExampleOfTheStandardIs(): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO));

        self::assertStatus(101, $client->answer);
        self::assertStringContainsString("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", $client->answer);
    }

    public function testTextAndBinaryMessagesOfEveryLengthOfLengthComeBack(): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO));
        foreach ([0, 1, 125, 126, 65535, 65536, 1000000] as $length) {
            $text = str_repeat('x', $length);

            $client->text($text);
            self::assertSame([1, $text], $client->read());
            $client->write(WebSocketClient::frame(2, str_repeat("\xff", $length)));
            self::assertSame([2, str_repeat("\xff", $length)], $client->read());
        }
    }

    public function testFramesSentTogetherWithTheRequestAreNotLost(): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO), frames: WebSocketClient::frame(1, 'early'));

        self::assertSame([1, 'early'], $client->read());
    }

    public function testFragmentsAreOneMessageAndAPingBetweenThemIsAnswered(): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO));

        $client->write(WebSocketClient::frame(1, "gr\xc3", isLast: false));
        $client->write(WebSocketClient::frame(9, 'ping'));
        self::assertSame([10, 'ping'], $client->read());
        $client->write(WebSocketClient::frame(0, "\xbcn", isLast: true));

        self::assertSame([1, 'grün'], $client->read());
    }

    /** @dataProvider violations */
    #[DataProvider('violations')]
    public function testAClientThatBreaksTheRulesIsToldHowByTheCode(int $code, string $bytes): void
    {
        $client = WebSocketClient::open($this->serve(self::ECHO));

        $client->write($bytes);

        self::assertSame($code, $client->closeCode());
        self::assertNull($client->read(), 'nothing follows the close frame');
    }

    /** @return iterable<string, array{int, string}> */
    public static function violations(): iterable
    {
        yield 'text that is not UTF-8' => [1007, WebSocketClient::frame(1, "\xff")];
        yield 'fragments that are not UTF-8 together' => [1007, WebSocketClient::frame(1, "\xc3", false) . WebSocketClient::frame(0, 'x')];
        yield 'a message over the limit' => [1009, WebSocketClient::frame(2, str_repeat('x', 1000001))];
        yield 'a declared length over the limit' => [1009, "\x82\xff" . pack('J', 1 << 40) . 'mask'];
        yield 'a frame without a mask' => [1002, WebSocketClient::frame(1, 'x', isMasked: false)];
        yield 'a reserved opcode' => [1002, WebSocketClient::frame(3, 'x')];
        yield 'a reserved bit' => [1002, "\xf1\x80mask"];
        yield 'a continuation of nothing' => [1002, WebSocketClient::frame(0, 'x')];
        yield 'a ping in fragments' => [1002, WebSocketClient::frame(9, 'x', isLast: false)];
    }

    public function testAClientThatClosesIsAnsweredAndTheHandlerHearsCodeAndReason(): void
    {
        $server = $this->serve(self::ECHO);
        $client = WebSocketClient::open($server);

        $client->write(WebSocketClient::frame(8, pack('n', 3001) . 'enough'));

        self::assertSame(3001, $client->closeCode());
        self::assertTrue($server->awaitLog('closed 3001 enough;'));
    }

    public function testAClientThatIsLostClosesTheWebSocketWith1006(): void
    {
        $server = $this->serve(self::ECHO);
        $client = WebSocketClient::open($server);

        $client->disconnect();

        self::assertTrue($server->awaitLog('closed 1006'));
    }

    /** @dataProvider ends */
    #[DataProvider('ends')]
    public function testAHandlerThatOnlyPushesIsCancelledWhenItsClientLeaves(string $last): void
    {
        $server = $this->serve(self::FEED . '$routes->websocket("/feed", $feed);', ', limits: new Limits(longLived: new LongLivedLimits(total: 1), clientShare: 1.0)');
        $client = WebSocketClient::open($server, '/feed');
        self::assertTrue($server->awaitLog('feeding;'));

        $client->write($last);
        $client->disconnect();

        self::assertTrue($server->awaitLog('was cancelled: its WebSocket is closed'), $server->log());
        // Its place is free again, and the failure of no handler was logged.
        self::assertTrue($server->awaitLog('feed ended;'));
        Timing::until(static fn(): bool => str_starts_with(WebSocketClient::open($server, '/feed')->answer, 'HTTP/1.1 101'), 'a handshake');
        self::assertStringNotContainsString('failed', $server->log());
    }

    /** @return iterable<string, array{string}> */
    public static function ends(): iterable
    {
        yield 'the client closes' => [WebSocketClient::frame(8, pack('n', 1000))];
        yield 'the connection is lost' => [''];
    }

    /** @dataProvider readersThatPush */
    #[DataProvider('readersThatPush')]
    public function testAHandlerThatHasStoppedToReceiveIsCancelledAfterTheGrace(string $before): void
    {
        $server = $this->serve(self::FEED . "\$routes->websocket('/', static function (WebSocket \$socket) use (\$feed): void { $before \$feed(\$socket); }, new WebSocketOptions(grace: 0.1));");
        $client = WebSocketClient::open($server);
        $client->text('subscribe');
        self::assertTrue($server->awaitLog('feeding;'));

        $client->disconnect();

        self::assertTrue($server->awaitLog('was cancelled: its WebSocket is closed'), $server->log());
    }

    /** @return iterable<string, array{string}> */
    public static function readersThatPush(): iterable
    {
        yield 'one message first' => ['$socket->receive();'];
        yield 'another task receives' => ['async(static function () use ($socket): void { foreach ($socket as $message); });'];
    }

    public function testAHandlerThatWorksOnAMessageWhenItsClientLeavesReceivesTheOthers(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->websocket("/", static function (WebSocket $socket): void {
                foreach ($socket as $message) {
                    fprintf(STDERR, "begins $message->data;");
                    gate("go");
                    fprintf(STDERR, "has done $message->data;");
                }
                fprintf(STDERR, "ends with {$socket->closeCode()};");
            });
            PHP);
        $client = WebSocketClient::open($server);
        $client->text('one');
        self::assertTrue($server->awaitLog('begins one;'));
        $client->text('two');
        $client->write(WebSocketClient::frame(8, pack('n', 1000)));
        self::assertSame(1000, $client->closeCode());
        // Longer than the server takes to notice that the client has left.
        usleep(2_100_000);

        $server->open('go');

        self::assertTrue($server->awaitLog('has done two;'), $server->log());
        self::assertTrue($server->awaitLog('ends with 1000;'));
    }

    public function testAHandlerThatOnlyPushesOutlivesItsClientWhereThatIsSwitchedOff(): void
    {
        $server = $this->serve('$routes->websocket("/", static function (WebSocket $socket): void { fprintf(STDERR, "feeding;"); gate("go"); fprintf(STDERR, "went on;"); });', ', cancelOnDisconnect: false');
        $client = WebSocketClient::open($server);
        self::assertTrue($server->awaitLog('feeding;'));
        $client->disconnect();
        usleep(2_100_000);

        $server->open('go');

        self::assertTrue($server->awaitLog('went on;'));
    }

    public function testAHandlerThatReturnsClosesWith1000AfterWhatItHasSent(): void
    {
        $server = $this->serve('$routes->websocket("/{name}", static function (string $name, WebSocket $socket) { $socket->send("bye $name"); });');
        $client = WebSocketClient::open($server, '/ann');

        self::assertSame([1, 'bye ann'], $client->read());
        self::assertSame(1000, $client->closeCode());
    }

    public function testAHandlerThatThrowsClosesWith1011AndIsLogged(): void
    {
        $server = $this->serve('$routes->websocket("/", static fn(WebSocket $socket) => throw new LogicException("secret"));');

        self::assertSame(1011, WebSocketClient::open($server)->closeCode());
        self::assertTrue($server->awaitLog('GET / failed: LogicException: secret'));
    }

    /** @dataProvider middlewares */
    #[DataProvider('middlewares')]
    public function testAnHttpExceptionAfterTheHandshakeIsLogged(string $middleware): void
    {
        $server = $this->serve($middleware . '$routes->websocket("/", static function (WebSocket $socket) { $socket->receive(); throw new HttpException(409, "conflict"); });');
        $client = WebSocketClient::open($server);

        $client->text('go');

        self::assertSame(1011, $client->closeCode());
        self::assertTrue($server->awaitLog('threw Weft\Http\HttpException (409: conflict), but the handshake was answered before'), $server->log());
    }

    /** @return iterable<string, array{string}> */
    public static function middlewares(): iterable
    {
        yield 'no middleware' => [''];
        yield 'middleware that answers exceptions' => ['$routes->use(new Weft\Http\Cors(["*"]));'];
    }

    /** @dataProvider senders */
    #[DataProvider('senders')]
    public function testAHandlerThatSendsToAClientThatHasLeftIsNotLogged(string $handler): void
    {
        $server = $this->serve("\$routes->websocket('/', static function (WebSocket \$socket): void { \$push = static function () use (\$socket): void { try { while (true) { \$socket->send(str_repeat('x', 65536)); delay(0.001); } } finally { fprintf(STDERR, 'over'); } }; $handler });", ', cancelOnDisconnect: false');
        $client = WebSocketClient::open($server);
        $client->read();

        $client->disconnect();

        self::assertTrue($server->awaitLog('over'), $server->log());
        self::assertStatus(404, $server->get('/other'));
        self::assertSame('over', $server->log());
    }

    /** @return iterable<string, array{string}> */
    public static function senders(): iterable
    {
        yield 'itself' => ['$push();'];
        yield 'in a task' => ['async($push); delay(60);'];
    }

    public function testAHandlerThatFailsOnTheWebSocketOfAnotherClientIsLogged(): void
    {
        $server = $this->serve('$first = null; $routes->websocket("/", static function (WebSocket $socket) use (&$first): void { if ($first === null) { $first = $socket; foreach ($socket as $message); fprintf(STDERR, "left;"); } else { $socket->receive(); $first->send("hello"); } });');
        $first = WebSocketClient::open($server);
        $second = WebSocketClient::open($server);
        $first->disconnect();
        self::assertTrue($server->awaitLog('left;'), $server->log());

        $second->text('go');

        self::assertSame(1011, $second->closeCode());
        self::assertTrue($server->awaitLog('threw Weft\Http\ClientDisconnectedException'), $server->log());
    }

    public function testAHandlerThatFailsWithTheEndOfAnotherTaskClosesWith1011(): void
    {
        $server = $this->serve('$routes->websocket("/", static function (WebSocket $socket) { $task = async(static fn() => delay(9)); $task->cancel("no connection"); $task->await(); });');

        self::assertSame(1011, WebSocketClient::open($server)->closeCode());
        self::assertTrue($server->awaitLog('GET / failed: Weft\\Runtime\\CancelledException: Task #'), $server->log());
    }

    public function testTasksOfAHandlerEndWithItsWebSocket(): void
    {
        $server = $this->serve('$routes->websocket("/", static function (WebSocket $socket) { async(static function () use ($socket) { try { $socket->send("begun"); delay(60); } finally { fprintf(STDERR, "child ended"); } }); $socket->receive(); });');
        $client = WebSocketClient::open($server);
        self::assertSame([1, 'begun'], $client->read());

        $client->text('go');

        self::assertSame(1000, $client->closeCode());
        self::assertTrue($server->awaitLog('child ended'));
    }

    public function testASenderWaitsForAClientThatTakesNothing(): void
    {
        $server = $this->serve('$routes->websocket("/", static function (WebSocket $socket) { for ($i = 1; $i <= 1000; $i++) { $socket->sendBinary(str_repeat("x", 100000)); if ($i % 100 === 0) { fprintf(STDERR, "sent $i;"); } } });');
        $client = WebSocketClient::open($server);
        $received = 0;

        self::assertNotNull($client->read());
        self::assertStringNotContainsString('sent 900;', $server->log());
        for ($received = 1; ($frame = $client->read()) !== null && $frame[0] === 2; $received++) {
            self::assertSame(100000, \strlen($frame[1]));
        }

        self::assertSame(1000, $received);
    }

    public function testAClientThatAnswersNoPingIsGone(): void
    {
        $server = $this->serve('$routes->websocket("/", static function (WebSocket $socket) { $socket->receive(); fprintf(STDERR, "ended {$socket->closeCode()}"); }, new WebSocketOptions(pingInterval: 0.2));');
        $client = WebSocketClient::open($server);

        self::assertSame([9, ''], $client->read());
        self::assertTrue($server->awaitLog('ended 1006'));
    }

    public function testTheFirstOfOurSubprotocolsThatIsOfferedIsAgreedOn(): void
    {
        $server = $this->serve('$routes->websocket("/", static fn(WebSocket $socket) => $socket->send($socket->subprotocol ?? "none"), new WebSocketOptions(subprotocols: ["v2", "v1"]));');

        $client = WebSocketClient::open($server, more: "Sec-WebSocket-Protocol: v0, v1, v2\r\n");
        self::assertStringContainsString("sec-websocket-protocol: v2\r\n", $client->answer);
        self::assertSame([1, 'v2'], $client->read());
        $client = WebSocketClient::open($server, more: "Sec-WebSocket-Protocol: other\r\n");
        self::assertStringNotContainsString('sec-websocket-protocol', $client->answer);
        self::assertSame([1, 'none'], $client->read());
    }

    public function testPagesOfAnotherHostMayNotConnectUnlessTheyAreNamed(): void
    {
        $server = $this->serve(self::ECHO . '$routes->websocket("/named", static fn(WebSocket $socket) => null, new WebSocketOptions(origins: ["https://other.test"]));');

        self::assertStatus(101, WebSocketClient::open($server, more: "Origin: http://weft.test\r\n")->answer);
        self::assertStatus(403, WebSocketClient::open($server, more: "Origin: http://other.test\r\n")->answer);
        self::assertStatus(101, WebSocketClient::open($server, '/named', "Origin: https://other.test\r\n")->answer);
        self::assertStatus(403, WebSocketClient::open($server, '/named', "Origin: https://weft.test\r\n")->answer);
    }

    public function testAPageOfTheSameHostAndAnotherSchemeMayNotConnect(): void
    {
        $server = $this->serve(self::ECHO, ', proxies: new Weft\Http\TrustedProxies(["127.0.0.1"])');

        $tls = "X-Forwarded-Proto: https\r\n";
        $answers = array_map(static fn(array $try): string => substr(WebSocketClient::open($server, more: "$try[0]Origin: $try[1]\r\n")->answer, 9, 3), [
            ['', 'http://weft.test'], ['', 'http://WEFT.test:80'], ['', 'https://weft.test'], ['', 'http://weft.test:443'], ['', 'http://weft.test:8080'], ['', 'null'], ['', 'weft.test'],
            [$tls, 'https://weft.test'], [$tls, 'https://weft.test:443'], [$tls, 'http://weft.test'], [$tls, 'https://other.test'],
        ]);

        self::assertSame(['101', '101', '403', '403', '403', '403', '403', '101', '101', '403', '403'], $answers);
    }

    public function testARequestThatIsNoHandshakeIsToldWhatItShouldBe(): void
    {
        $server = $this->serve(self::ECHO);

        $response = $server->get('/');
        self::assertStatus(426, $response);
        self::assertStringContainsString("sec-websocket-version: 13\r\n", $response);
        self::assertStringContainsString("connection: upgrade\r\nupgrade: websocket\r\n", $response);
        self::assertStatus(426, $server->head(WebSocketClient::request(version: '8')));
        self::assertStatus(400, $server->head(WebSocketClient::request(key: 'short')));
    }

    public function testAServerThatStopsSaysSoWith1001(): void
    {
        $server = $this->serve(self::ECHO);
        $client = WebSocketClient::open($server);
        $client->text('x');
        $client->read();

        $server->signal();

        self::assertSame(1001, $client->closeCode());
        $client->disconnect();
        self::assertSame([0, "ended\n"], $server->stop());
    }

    public function testAWebSocketOutlivesTheTimeOutsOfHttp(): void
    {
        $server = $this->serve(self::ECHO, ', limits: new Limits(deadline: 0.25, keepalive: new Keepalive(idle: 0.25), header: new HeaderLimits(timeout: 0.25))');
        // On a busy machine the handshake itself may take longer than they.
        Timing::until(static function () use ($server, &$client): bool {
            $client = WebSocketClient::open($server);

            return str_starts_with($client->answer, 'HTTP/1.1 101');
        }, 'a handshake');
        usleep(1_000_000);

        $client->text('still here');

        self::assertSame([1, 'still here'], $client->read());
    }

    /** @dataProvider outOfBounds */
    #[DataProvider('outOfBounds')]
    public function testOptionsOutOfTheirBoundsAreRefused(int $messageBytes, float $pingInterval): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("messageBytes must be at least 1 and pingInterval at least 0 seconds, got $messageBytes and " . (\is_nan($pingInterval) ? 'NAN' : $pingInterval));

        new WebSocketOptions(messageBytes: $messageBytes, pingInterval: $pingInterval);
    }

    public function testAGraceBelowZeroIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The grace of a WebSocket must be at least 0 seconds, got -1');

        new WebSocketOptions(grace: -1.0);
    }

    /** @return iterable<array{int, float}> */
    public static function outOfBounds(): iterable
    {
        yield 'no message fits' => [0, 30.0];
        yield 'a ping before the last one' => [1, -1.0];
        yield 'no number' => [1, \NAN];
    }

    /** @dataProvider compressions */
    #[DataProvider('compressions')]
    public function testAnotherClientAgreesAboutMessagesPingsAndTheEnd(string $options, string $extension): void
    {
        exec('/usr/bin/python3 -c "import websockets" 2>/dev/null', $output, $missing);
        if ($missing !== 0) {
            self::markTestSkipped('python3-websockets is missing: scripts/setup test');
        }
        $server = $this->serve(str_replace('messageBytes: 1000000', "messageBytes: 1000000$options", self::ECHO));

        exec('timeout 300 /usr/bin/python3 ' . escapeshellarg(__DIR__ . '/websocket_client.py') . " ws://$server->address/ 2>&1", $output, $code);

        self::assertSame([0, ["200 messages, 2 pings, closed 4000$extension"]], [$code, $output]);
    }

    /** @return iterable<string, array{string, string}> */
    public static function compressions(): iterable
    {
        yield 'plain' => ['', ''];
        yield 'compressed' => [', compress: true', ', permessage-deflate'];
    }
}
