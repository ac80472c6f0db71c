<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Timing;

/** A client that is still sending when its answer is the last one of the connection gets the answer all the same. */
final class LingerTest extends HttpTestCase
{
    private const ROUTES = <<<'PHP'
        $routes->post("/", static fn(Request $r) => Response::text((string) strlen($r->body())))
            ->post("/ignores", static fn() => Response::text(str_repeat("x", 1 << 20)));
        PHP;
    /** Bytes that no socket holds back for its server. */
    private const MUCH = 12 << 20;
    /** Seconds of silence after which the server closes the connection; one that goes on sending has five. */
    private const SILENCE = 1.0;
    private const ATTEMPTS = 10;

    private static ?ServerProcess $server = null;

    private static function server(): ServerProcess
    {
        return self::$server ??= ServerProcess::start(self::ROUTES, ', limits: new Limits(body: new BodyLimits(bytes: 200_000, timeout: 600.0))');
    }

    public static function tearDownAfterClass(): void
    {
        self::$server?->stop();
        self::$server = null;
    }

    /** @dataProvider refused */
    #[DataProvider('refused')]
    public function testAClientThatLooksAtItsAnswerOnlyWhenItHasSentEverythingReadsAllOfIt(int $status, string $head, string $piece): void
    {
        $socket = self::sendMuch(self::server()->connect(...), $head, $piece);
        $response = ServerProcess::readAll($socket);

        self::assertStatus($status, $response);
        if ($status !== 431 && $status !== 400) {
            self::assertSame((int) self::field($response, 'content-length'), \strlen(self::bodyOf($response)));
        }
    }

    /** @return iterable<string, array{int, string, string}> */
    public static function refused(): iterable
    {
        $post = "POST / HTTP/1.1\r\nHost: a\r\n";
        $chunk = "10000\r\n" . str_repeat('a', 65_536) . "\r\n";
        $piece = str_repeat('a', 65_536);
        yield 'a body that is declared too large' => [413, $post . 'Content-Length: ' . self::MUCH . "\r\n\r\n", $piece];
        yield 'chunks that become too large' => [413, $post . "Transfer-Encoding: chunked\r\n\r\n", $chunk];
        yield 'a chunk that is none' => [400, $post . "Transfer-Encoding: chunked\r\n\r\nzz\r\n", $chunk];
        yield 'no request at all' => [400, "\0\r\n\r\n", $piece];
        yield 'a header without an end' => [431, "GET / HTTP/1.1\r\nHost: a\r\nX: ", $piece];
        yield 'an expectation nobody has' => [417, $post . "Expect: the best\r\nContent-Length: " . self::MUCH . "\r\n\r\n", $piece];
        yield 'a body the handler does not want' => [200, 'POST /ignores' . substr($post, 6) . "Transfer-Encoding: chunked\r\n\r\n", $chunk];
    }

    public function testAClientThatHasSentNoChunkBeforeTheAnswerReadsAllOfItToo(): void
    {
        $head = "POST /ignores HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        $socket = self::sendMuch(self::server()->connect(...), $head, "10000\r\n" . str_repeat('a', 65_536) . "\r\n", static function ($socket): void {
            $sockets = [$socket];
            self::assertSame(1, stream_select($sockets, $none, $none, (int) Timing::DEADLINE), 'the answer');
        });

        self::assertSame(1 << 20, \strlen(self::bodyOf(ServerProcess::readAll($socket))));
    }

    public function testTheSameHoldsOverTls(): void
    {
        $certificates = new Certificates();
        try {
            $certificates->issue('a', 'a.test');
            $server = $this->serve(self::ROUTES, ", limits: new Limits(body: new BodyLimits(bytes: 200_000)), tls: new Tls({$certificates->php('a')})");
            $context = stream_context_create(['ssl' => ['verify_peer' => false, 'verify_peer_name' => false]]);
            $connect = static function () use ($server, $context) {
                $socket = stream_socket_client("tls://$server->address", $code, $message, Timing::DEADLINE, STREAM_CLIENT_CONNECT, $context);
                self::assertIsResource($socket, (string) $message);

                return $socket;
            };

            $socket = self::sendMuch($connect, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " . self::MUCH . "\r\n\r\n", str_repeat('a', 65_536));

            self::assertStringEndsWith("\r\n\r\n413 Payload Too Large\n", ServerProcess::readAll($socket));
        } finally {
            $certificates->remove();
        }
    }

    /** @dataProvider uploads */
    #[DataProvider('uploads')]
    public function testOverHttp2ABodyThatIsTooLargeIsReadOnSoThatCurlSeesTheAnswer(string $field): void
    {
        $file = (string) tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($file, str_repeat('a', self::MUCH));
        try {
            $response = self::server()->get('/', '--http2-prior-knowledge', '--data-binary', "@$file", '-H', $field);
        } finally {
            unlink($file);
        }

        self::assertStringStartsWith('HTTP/2 413', $response);
    }

    /** @return iterable<string, array{string}> */
    public static function uploads(): iterable
    {
        yield 'with a length' => ['x: y'];
        yield 'without a length' => ['content-length:'];
    }

    public function testABodyThatIsTooLargeIsNotAskedFor(): void
    {
        $response = self::server()->exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\nExpect: 100-continue\r\n\r\n");

        self::assertStatus(413, $response);
        self::assertStringNotContainsString('100 Continue', $response);
    }

    public function testTheAnswerDoesNotWaitForTheBody(): void
    {
        $socket = self::server()->connect();
        fwrite($socket, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");

        // The server would wait ten minutes for the body, the client waits one for the answer.
        self::assertStatus(413, (string) fread($socket, 65_536));
    }

    public function testAClientThatGoesOnSendingIsCutOffAndOnlySoManyAreWaitedFor(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(connections: 4, clientShare: 1.0, body: new BodyLimits(bytes: 1))');
        $first = self::refusedOn($server);
        $second = self::refusedOn($server);

        [$long, $short] = self::secondsUntilClosed($first, $second);

        self::assertLessThan(0.5, $short / $long, 'one in four is waited for');
        self::assertGreaterThan(2.0, $long);
        self::assertStatus(413, $server->get('/', '-d', 'xx'));
    }

    public function testAServerThatStopsWaitsForSuchAClientForLittleMoreThanASecond(): void
    {
        Timing::assertDoesNotWait(5.0, function (): void {
            $server = $this->serve(self::ROUTES, ', limits: new Limits(body: new BodyLimits(bytes: 1))');
            $socket = self::refusedOn($server);
            $server->signal();

            self::secondsUntilClosed($socket);
            self::assertSame(0, $server->stop()[0]);
        }, 'a server that goes on waits for 5 s');
    }

    /**
     * @return resource a connection that has been answered 413 and has most of its body to send
     */
    private static function refusedOn(ServerProcess $server)
    {
        $socket = $server->connect();
        fwrite($socket, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
        self::assertStatus(413, (string) fread($socket, 65_536));

        return $socket;
    }

    /**
     * @param resource ...$sockets on which a byte is sent twenty times a second
     *
     * @return list<float>
     */
    private static function secondsUntilClosed(...$sockets): array
    {
        $from = microtime(true);
        $seconds = [];
        Timing::until(static function () use ($sockets, $from, &$seconds): bool {
            foreach ($sockets as $index => $socket) {
                if (!isset($seconds[$index]) && @fwrite($socket, 'a') !== 1) {
                    $seconds[$index] = microtime(true) - $from;
                }
            }
            usleep(45_000);

            return \count($seconds) === \count($sockets);
        }, 'the server closes connections on which the client goes on sending');
        ksort($seconds);

        return $seconds;
    }

    /**
     * Sends all of a request that is answered before its end. A machine that takes longer than the server waits shows nothing: then again.
     *
     * @param \Closure(): resource $connect
     * @param ?\Closure(resource): void $await between the head and what follows it
     *
     * @return resource
     */
    private static function sendMuch(\Closure $connect, string $head, string $piece, ?\Closure $await = null)
    {
        for ($attempt = 1;; ++$attempt) {
            $socket = $connect();
            stream_set_timeout($socket, (int) Timing::DEADLINE);
            $from = microtime(true);
            $sent = @fwrite($socket, $head) === \strlen($head);
            $await && $await($socket);
            for ($bytes = 0; $sent && $bytes < self::MUCH; $bytes += \strlen($piece)) {
                // Bytes beyond the declared length would be a request of their own.
                $sent = @fwrite($socket, $piece) === \strlen($piece);
            }
            if ($sent) {
                return $socket;
            }
            $seconds = microtime(true) - $from;
            if ($seconds < self::SILENCE || $attempt === self::ATTEMPTS) {
                self::fail(\sprintf('The connection is closed while the client sends, after %d bytes and %.3f s', $bytes, $seconds));
            }
        }
    }
}
