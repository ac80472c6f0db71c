<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;

/** Whatever clients send where this library reads it: an answer, no error of ours, and the next request is served. */
final class RandomInputTest extends HttpTestCase
{
    private const ROUNDS = 400;
    private const ROUTES = <<<'PHP'
        $routes->use(new Compression(minBytes: 0));
        $routes->route(["GET", "POST"], "/", static function (Request $r) {
            $seen = [$r->queryParameters(), $r->queryParameter("a"), $r->cookies(), $r->cookie("a"), $r->form(), $r->host(), $r->header("x")];
            return Response::text(base64_encode(serialize($seen)));
        });
        $routes->get("/names/{a}/{b:.*}", static fn(string $a, string $b) => Response::text(base64_encode($a . $b)));
        $routes->get("/file", static fn() => Response::file(FILE));
        $routes->static("/files", DIRECTORY);
        PHP;

    private \Random\Randomizer $random;

    /** @dataProvider fields */
    #[DataProvider('fields')]
    public function testRandomFieldsAreReadOrRefused(string $request, array $pieces): void
    {
        $this->random = new \Random\Randomizer(new \Random\Engine\Mt19937(5));
        $directory = new Directory();
        $file = $directory->write('a.txt', 'contents');
        $server = $this->serve(strtr(self::ROUTES, ['FILE' => var_export($file, true), 'DIRECTORY' => var_export($directory->path, true)]));
        try {
            for ($round = 0; $round < self::ROUNDS; $round++) {
                $input = $this->input($pieces);
                $bytes = strtr($request, ['INPUT' => $input, 'LENGTH' => (string) \strlen($input)]);
                $status = (int) substr($server->exchange($bytes), 9, 3);
                self::assertContains($status, [200, 206, 301, 304, 400, 404, 405, 412, 413, 414, 415, 416, 431], base64_encode($bytes));
            }
            self::assertSame([], preg_grep('/^$|warning HTTP server refused \d+ × \w+, last from /', explode("\n", $server->log()), PREG_GREP_INVERT));
            self::assertSame('contents', self::bodyOf($server->get('/file')));
        } finally {
            $directory->remove();
        }
    }

    /** @return iterable<string, array{string, list<string>}> */
    public static function fields(): iterable
    {
        $rest = "Host: a\r\nConnection: close\r\n";
        $encoded = ['%', '%00', '%2e', '%2F', '%ff', '%zz', '&', '=', '[', ']', ';', '+', 'a', 'a[b]', '.', '/', '//', '..', "\xc3\xa4", '?', '~', str_repeat('x', 500)];
        yield 'query' => ["GET /?INPUT HTTP/1.1\r\n$rest\r\n", $encoded];
        yield 'path' => ["GET /INPUT HTTP/1.1\r\n$rest\r\n", $encoded];
        yield 'names in a path' => ["GET /names/INPUT/INPUT HTTP/1.1\r\n$rest\r\n", $encoded];
        yield 'path of a file' => ["GET /files/INPUT HTTP/1.1\r\n$rest\r\n", $encoded];
        yield 'form' => ["POST / HTTP/1.1\r\n{$rest}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: LENGTH\r\n\r\nINPUT", [...$encoded, "\0", "\r\n"]];
        yield 'cookies' => ["GET / HTTP/1.1\r\n{$rest}Cookie: INPUT\r\n\r\n", ['a', '=', ';', '; ', '"', '%00', '%', ',', ' ', "\t", "\xff", '\\', '$', str_repeat('y', 300)]];
        yield 'codings' => ["GET / HTTP/1.1\r\n{$rest}Accept-Encoding: INPUT\r\n\r\n", ['gzip', 'br', 'zstd', 'identity', '*', ',', ';', 'q=', '0', '1', '.', '5', ' ', "\xff", '"']];
        yield 'ranges' => ["GET /file HTTP/1.1\r\n{$rest}Range: INPUT\r\n\r\n", ['bytes', '=', '-', ',', '0', '1', '9', '7', ' ', '99999999999999999999', "\xff", 'bytes=']];
        yield 'ranges that are nearly right' => ["GET /file HTTP/1.1\r\n{$rest}Range: bytes=INPUT\r\n\r\n", ['-', ',', '0', '1', '3', '7']];
        yield 'conditions' => ["GET /file HTTP/1.1\r\n{$rest}If-None-Match: INPUT\r\nIf-Range: INPUT\r\nIf-Modified-Since: INPUT\r\nRange: bytes=0-1\r\n\r\n", ['"', 'W/', '*', ',', ' ', 'a', 'Sun, 06 Nov 1994', ' 08:49:37 GMT', "\xff"]];
        yield 'host' => ["GET / HTTP/1.1\r\nConnection: close\r\nHost: INPUT\r\n\r\n", ['a', ':', '80', '[', ']', '::1', '@', '/', '?', "\xff", '%41', ' ', '.']];
        yield 'content type' => ["POST / HTTP/1.1\r\n{$rest}Content-Type: INPUT\r\nContent-Length: 3\r\n\r\na=b", ['multipart/form-data', ';', ' boundary=', '"', 'x', '=', ',', "\xff", 'application/x-www-form-urlencoded', '\\']];
    }

    /** @param list<string> $pieces */
    private function input(array $pieces): string
    {
        $input = '';
        for ($i = $this->random->getInt(0, 14); $i > 0; $i--) {
            $input .= $pieces[$this->random->getInt(0, \count($pieces) - 1)];
        }

        return $input;
    }
}
