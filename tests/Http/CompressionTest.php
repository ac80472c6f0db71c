<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use Weft\Http\Compression;

/** The middleware that compresses answers; which coding is chosen has its own tests in the extension. */
final class CompressionTest extends HttpTestCase
{
    private const TEXT = 'str_repeat("to be or not to be, ", 500)';

    public function testAnAnswerIsCompressedAsTheClientAsks(): void
    {
        $server = $this->server('$routes->get("/", static fn() => Response::text(' . self::TEXT . '));');
        $text = str_repeat('to be or not to be, ', 500);

        foreach (['gzip' => 'gzip', 'br' => 'br', 'zstd, gzip, br' => 'zstd', 'gzip, deflate, br' => 'br', 'gzip;q=0, identity' => '', 'deflate' => ''] as $accept => $coding) {
            $response = $server->get('/', '-H', "Accept-Encoding: $accept");
            self::assertStatus(200, $response);
            self::assertSame($coding, self::field($response, 'content-encoding'), $accept);
            self::assertSame('accept-encoding', self::field($response, 'vary'));
            self::assertSame($coding === '', self::bodyOf($response) === $text, $accept);
            self::assertSame((string) \strlen(self::bodyOf($response)), self::field($response, 'content-length'));
        }
        self::assertSame($text, gzdecode(self::bodyOf($server->get('/', '-H', 'Accept-Encoding: gzip'))));
        self::assertSame($text, $server->curl('/', '--compressed')[1]);
        self::assertSame($text, $server->curl('/', '--compressed', '-H', 'Accept-Encoding: br', '--http2-prior-knowledge')[1]);
    }

    public function testALargeAnswerIsCompressedBesideTheOthers(): void
    {
        $server = $this->server('$text = str_repeat(implode(",", range(1, 100_000)), 8); $routes->get("/", static fn() => Response::text($text))->get("/small", static fn() => Response::text("small"));');
        $text = str_repeat(implode(',', range(1, 100_000)), 8);
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");

        self::assertSame('small', self::bodyOf($server->get('/small')));
        self::assertTrue(gzdecode(self::bodyOf(ServerProcess::readAll($socket))) === $text);
    }

    public function testAnEmptyPieceOfAStreamSendsNothing(): void
    {
        $server = $this->server('foreach (["with" => ["a", "", "", "b", ""], "without" => ["a", "b"]] as $path => $pieces) { $routes->get("/$path", static fn() => Response::stream($pieces, "text/plain")); }');

        foreach (['gzip', 'br', 'zstd'] as $coding) {
            [$with, $without] = array_map(static fn(string $path): string => self::bodyOf($server->get($path, '-H', "Accept-Encoding: $coding")), ['/with', '/without']);
            self::assertSame(bin2hex($without), bin2hex($with), $coding);
        }
    }

    public function testEachPieceOfAStreamCanBeReadWhenItWasWritten(): void
    {
        $server = $this->server('$routes->get("/", static fn() => Response::stream((static function () { yield "first,"; gate("second"); yield "second"; })(), "text/plain"))->get("/writer", static fn() => Response::stream(static function (BodyWriter $out) { $out->write("a"); $out->write("b"); }, "text/plain"));');
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
        $head = '';
        while (!str_contains($head, "\r\n\r\n") || str_ends_with($head, "\r\n\r\n")) {
            $head .= fread($socket, 65536);
        }
        $inflate = inflate_init(\ZLIB_ENCODING_GZIP);

        $read = inflate_add($inflate, self::chunks(self::bodyOf($head)));

        self::assertSame('first,', $read);
        $server->open('second');
        self::assertSame('second', inflate_add($inflate, self::chunks(ServerProcess::readAll($socket))));
        self::assertSame('ab', gzdecode(self::bodyOf($server->get('/writer', '-H', 'Accept-Encoding: gzip', '--http2-prior-knowledge'))));
        self::assertSame('ab', $server->curl('/writer')[1]);
    }

    public function testResponsesThatMustNotBeTransformedAreNotCompressed(): void
    {
        $file = var_export(__FILE__, true);
        $server = $this->server(<<<PHP
            \$text = str_repeat('x', 5000);
            \$routes->get('/short', static fn() => Response::text('x'))
                ->get('/image', static fn() => new Response(200, ['content-type' => 'image/png'], \$text))
                ->get('/unknown', static fn() => new Response(200, [], \$text))
                ->get('/coded', static fn() => new Response(200, ['content-type' => 'text/plain', 'content-encoding' => 'br'], \$text))
                ->get('/kept', static fn() => new Response(200, ['content-type' => 'text/plain', 'cache-control' => 'public, No-Transform'], \$text))
                ->get('/part', static fn() => new Response(206, ['content-type' => 'text/plain', 'content-range' => 'bytes 0-4999/9999'], \$text))
                ->get('/file', static fn() => Response::file($file, 'text/plain'))
                ->get('/events', static fn() => Response::events(['x']));
            PHP);

        foreach (['short', 'image', 'unknown', 'coded', 'kept', 'part', 'file', 'events'] as $path) {
            $response = $server->get("/$path", '-H', 'Accept-Encoding: gzip');
            self::assertStatus($path === 'part' ? 206 : 200, $response);
            self::assertSame($path === 'coded' ? 'br' : '', self::field($response, 'content-encoding'), $path);
            self::assertSame('', self::field($response, 'vary'), $path);
        }
    }

    public function testFieldsFollowTheOtherBytes(): void
    {
        $server = $this->server('$routes->get("/", static fn() => (new Response(200, ["content-type" => "text/css", "etag" => "\"1\"", "vary" => "origin", "content-length" => 10_000, "accept-ranges" => "bytes"], ' . self::TEXT . ')));');

        $response = $server->get('/', '-H', 'Accept-Encoding: gzip');
        self::assertSame('W/"1"', self::field($response, 'etag'));
        self::assertSame('origin, accept-encoding', self::field($response, 'vary'));
        self::assertSame('', self::field($response, 'accept-ranges'));
        self::assertStatus(200, $server->get('/', '--head', '-H', 'Accept-Encoding: gzip'));
    }

    public function testAHandlerThatReturnsSomethingElseIsNamedAllTheSame(): void
    {
        $server = $this->server('$routes->get("/", static fn() => "text");');

        self::assertStatus(500, $server->get('/', '-H', 'Accept-Encoding: gzip'));
        self::assertTrue($server->awaitLog('returned string'));
        self::assertMatchesRegularExpression('~The handler Closure \S+:\d+ of ~', $server->log());
    }

    public function testCodingsAndSizesAreLimitedToWhatThereIs(): void
    {
        foreach ([['minBytes' => -1], ['codings' => ['deflate']], ['codings' => []]] as $arguments) {
            try {
                new Compression(...$arguments);
                self::fail('was taken: ' . json_encode($arguments));
            } catch (\ValueError $error) {
                self::assertStringContainsString('got', $error->getMessage());
            }
        }
    }

    private function server(string $routes): ServerProcess
    {
        return $this->serve('$routes->use(new Compression());' . $routes);
    }

    /** What whole chunks hold. */
    private static function chunks(string $coded): string
    {
        $bytes = '';
        while (preg_match('/^([0-9a-f]+)\r\n/i', $coded, $found) === 1) {
            $bytes .= substr($coded, \strlen($found[0]), (int) hexdec($found[1]));
            $coded = substr($coded, \strlen($found[0]) + (int) hexdec($found[1]) + 2);
        }

        return $bytes;
    }
}
