<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;

/** `Response::file()`: RFC 9110 §13 (conditions) and §14 (ranges) over real connections. */
final class FileTest extends HttpTestCase
{
    private const TEXT = 'abcdefghijklmnopqrstuvwxyz';
    private const MODIFIED = 784_111_777;
    private const DATE = 'Sun, 06 Nov 1994 08:49:37 GMT';

    private Directory $directory;

    protected function setUp(): void
    {
        $this->directory = new Directory();
        $this->directory->write('a.txt', self::TEXT, self::MODIFIED);
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        $this->directory->remove();
    }

    public function testAFileIsSentWithWhatIsKnownOfIt(): void
    {
        $response = $this->server()->get('/a.txt');

        self::assertStatus(200, $response);
        self::assertStringContainsString("content-type: text/plain; charset=utf-8\r\n", $response);
        self::assertStringContainsString("content-length: 26\r\n", $response);
        self::assertStringContainsString('last-modified: ' . self::DATE . "\r\n", $response);
        self::assertStringContainsString("accept-ranges: bytes\r\n", $response);
        self::assertMatchesRegularExpression('/^etag: "[0-9a-f]+-1a"\r$/m', $response);
        self::assertSame(self::TEXT, self::bodyOf($response));
    }

    public function testHeadHasTheFieldsAndNoBodyOnBothProtocols(): void
    {
        $server = $this->server();

        foreach (['--http1.1', '--http2-prior-knowledge'] as $protocol) {
            $response = $server->get('/a.txt', $protocol, '--head');
            self::assertStatus(200, $response);
            self::assertStringContainsString("content-length: 26\r\n", $response);
            self::assertSame('', self::bodyOf($response));
        }
        $head = $server->exchange("HEAD /a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\nConnection: close\r\n\r\n");
        self::assertStatus(200, $head);
        self::assertSame('', self::bodyOf($head));
    }

    /** @dataProvider protocols */
    #[DataProvider('protocols')]
    public function testALargeFileArrivesWholeAndInPartsOverEveryProtocol(string $protocol, bool $isSecured): void
    {
        $certificates = new Certificates();
        $certificates->issue('a', 'a.test');
        $bytes = random_bytes(3_000_000);
        $file = $this->directory->write('large.bin', $bytes);
        $server = $this->serve($this->routes(), $isSecured ? ", tls: new Tls({$certificates->php('a')})" : '');
        $scheme = $isSecured ? 'https' : 'http';
        $fetch = static function (string ...$arguments) use ($server, $protocol, $scheme): string {
            $command = ['curl', '-sSk', '--max-time', '20', $protocol, ...$arguments, "$scheme://$server->address/large.bin"];

            return (string) shell_exec(implode(' ', array_map(escapeshellarg(...), $command)));
        };

        try {
            self::assertTrue($fetch() === $bytes);
            self::assertTrue($fetch('-r', '100000-2900000') === substr($bytes, 100_000, 2_800_001));
        } finally {
            $certificates->remove();
            unlink($file);
        }
    }

    /** @return iterable<string, array{string, bool}> */
    public static function protocols(): iterable
    {
        yield 'HTTP/1.1' => ['--http1.1', false];
        yield 'HTTP/2' => ['--http2-prior-knowledge', false];
        yield 'HTTP/1.1 over TLS' => ['--http1.1', true];
        yield 'HTTP/2 over TLS' => ['--http2', true];
    }

    /** @dataProvider ranges */
    #[DataProvider('ranges')]
    public function testARangeIsAnsweredAsTheStandardSays(string $range, int $status, string $contentRange, string $body): void
    {
        $response = $this->server()->get('/a.txt', '-H', "Range: $range");

        self::assertStatus($status, $response);
        self::assertSame($contentRange, self::field($response, 'content-range'));
        self::assertSame($body, self::bodyOf($response));
        self::assertSame((string) \strlen($body), self::field($response, 'content-length'));
    }

    /** @return iterable<string, array{string, int, string, string}> */
    public static function ranges(): iterable
    {
        yield 'from the beginning' => ['bytes=0-2', 206, 'bytes 0-2/26', 'abc'];
        yield 'to the end' => ['bytes=24-', 206, 'bytes 24-25/26', 'yz'];
        yield 'beyond the end' => ['bytes=24-100', 206, 'bytes 24-25/26', 'yz'];
        yield 'the last ones' => ['bytes=-3', 206, 'bytes 23-25/26', 'xyz'];
        yield 'more last ones than there are' => ['bytes=-300', 206, 'bytes 0-25/26', self::TEXT];
        yield 'behind the end' => ['bytes=26-', 416, 'bytes */26', ''];
        yield 'no last ones' => ['bytes=-0', 416, 'bytes */26', ''];
        yield 'malformed' => ['bytes=2-1', 200, '', self::TEXT];
        yield 'of another unit' => ['lines=0-1', 200, '', self::TEXT];
        yield 'the same twice' => ['bytes=0-,0-', 200, '', self::TEXT];
        yield 'one of two is not there' => ['bytes=100-,0-0', 206, 'bytes 0-0/26', 'a'];
    }

    public function testSeveralRangesAreParts(): void
    {
        $response = $this->server()->get('/a.txt', '-H', 'Range: bytes=0-1,-2', '-H', 'If-Range: ' . self::DATE);

        self::assertStatus(206, $response);
        self::assertSame(1, preg_match('/^content-type: multipart\/byteranges; boundary=(\w+)\r$/m', $response, $found));
        $part = static fn(string $range, string $text): string => "--$found[1]\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-range: bytes $range/26\r\n\r\n$text\r\n";
        $body = $part('0-1', 'ab') . $part('24-25', 'yz') . "--$found[1]--\r\n";
        self::assertSame($body, self::bodyOf($response));
        self::assertSame((string) \strlen($body), self::field($response, 'content-length'));
    }

    public function testConditionsDecideWhatIsSent(): void
    {
        $server = $this->server();
        $tag = self::field($server->get('/a.txt'), 'etag');
        $before = 'Sun, 06 Nov 1994 08:49:36 GMT';
        $cases = [
            [304, ["If-None-Match: $tag"]], [304, ["If-None-Match: W/$tag, \"x\""]], [304, ['If-None-Match: *']], [200, ['If-None-Match: "x"']],
            [304, ['If-Modified-Since: ' . self::DATE]], [200, ["If-Modified-Since: $before"]], [200, ['If-None-Match: "x"', 'If-Modified-Since: ' . self::DATE]],
            [200, ["If-Match: $tag"]], [412, ['If-Match: "x"']], [412, ["If-Unmodified-Since: $before"]], [200, ['If-Unmodified-Since: ' . self::DATE]],
            [206, ['Range: bytes=0-0', "If-Range: $tag"]], [200, ['Range: bytes=0-0', 'If-Range: "x"']], [200, ['Range: bytes=0-0', "If-Range: W/$tag"]],
            [304, ['Range: bytes=0-0', "If-None-Match: $tag"]], [412, ['Range: bytes=0-0', 'If-Match: "x"']],
        ];
        foreach ($cases as [$status, $fields]) {
            $response = $server->get('/a.txt', ...array_merge(...array_map(static fn(string $field): array => ['-H', $field], $fields)));

            self::assertStatus($status, $response);
            self::assertSame($tag, self::field($response, 'etag'));
            self::assertSame(match ($status) {
                200 => self::TEXT,
                206 => 'a',
                default => '',
            }, self::bodyOf($response), implode(', ', $fields));
            self::assertSame($status < 300, self::field($response, 'content-type') !== '');
        }
    }

    public function testAnUnchangedFileIsToldSoOnAConnectionThatGoesOn(): void
    {
        $server = $this->server();
        $one = "GET /a.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n";

        $response = $server->exchange("$one\r\n{$one}Connection: close\r\n\r\n");

        self::assertSame(2, substr_count($response, 'HTTP/1.1 304'));
        self::assertStringNotContainsString('content-length', $response);
    }

    public function testFieldsOfTheHandlerReplaceThoseOfTheFile(): void
    {
        $path = var_export("{$this->directory->path}/a.txt", true);
        $server = $this->serve("\$routes->get('/', static fn() => Response::file($path, 'application/x-thing', download: 'Bericht \"ä\".txt')->withHeader('etag', '\"v1\"'));");

        $response = $server->get('/');
        self::assertSame('application/x-thing', self::field($response, 'content-type'));
        self::assertSame("attachment; filename=\"Bericht ____.txt\"; filename*=UTF-8''Bericht%20%22%C3%A4%22.txt", self::field($response, 'content-disposition'));
        self::assertSame('"v1"', self::field($response, 'etag'));
        self::assertStatus(304, $server->get('/', '-H', 'If-None-Match: "v1"'));
    }

    public function testAnotherStatusOrMethodHasNeitherRangesNorConditions(): void
    {
        $path = var_export("{$this->directory->path}/a.txt", true);
        $server = $this->serve("\$routes->get('/', static fn() => Response::file($path)->withStatus(404))->post('/', static fn() => Response::file($path));");

        $response = $server->get('/', '-H', 'Range: bytes=0-1', '-H', 'If-None-Match: *');
        self::assertStatus(404, $response);
        self::assertSame(self::TEXT, self::bodyOf($response));
        self::assertStatus(200, $server->get('/', '-X', 'POST', '-H', 'Range: bytes=0-1'));
    }

    public function testAPathThatIsNoFileIsAnsweredWith404WithoutRevealingTheDirectory(): void
    {
        posix_mkfifo("{$this->directory->path}/pipe", 0o600);
        mkdir("{$this->directory->path}/directory");
        $server = $this->server();

        foreach (['missing.txt', 'directory', 'pipe', 'a.txt%00', str_repeat('x', 300)] as $name) {
            $response = $server->get("/$name");
            self::assertStatus(404, $response);
            self::assertStringNotContainsString($this->directory->path, $response);
        }
        self::assertSame('', $server->log());
    }

    public function testAnEmptyFileIsSentAndHasNoRanges(): void
    {
        $this->directory->write('empty.html', '');
        $server = $this->server();

        $response = $server->get('/empty.html');
        self::assertStatus(200, $response);
        self::assertSame('0', self::field($response, 'content-length'));
        self::assertStatus(416, $server->get('/empty.html', '-H', 'Range: bytes=0-'));
    }

    public function testAFileOfManyGigabytesIsNeverInMemory(): void
    {
        $file = fopen("{$this->directory->path}/sparse.bin", 'w');
        ftruncate($file, 8 << 30);
        $server = $this->server();
        $before = $server->resident();
        $socket = $server->connect();
        fwrite($socket, "GET /sparse.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        $received = 0;
        while ($received < 200_000_000) {
            $received += \strlen((string) fread($socket, 1 << 20));
        }

        self::assertLessThan($before + 16_384, $server->resident());
        self::assertSame('bytes 8589934591-8589934591/8589934592', self::field($server->get('/sparse.bin', '-r', '-1'), 'content-range'));
    }

    public function testAFileThatBecomesShorterBreaksTheAnswerOff(): void
    {
        $path = $this->directory->write('shrinks.bin', str_repeat('x', 20_000_000));
        $server = $this->server();
        $socket = $server->connect();
        fwrite($socket, "GET /shrinks.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        fread($socket, 1);

        ftruncate(fopen($path, 'r+'), 10);

        self::assertLessThan(20_000_000, \strlen(ServerProcess::readAll($socket)));
        self::assertStatus(200, $server->get('/a.txt'));
    }

    public function testAFileThatIsReplacedWhileItIsSentIsSentAsItWas(): void
    {
        $bytes = random_bytes(10_000_000);
        $path = $this->directory->write('old.bin', $bytes);
        $server = $this->server();
        $socket = $server->connect();
        fwrite($socket, "GET /old.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        $first = fread($socket, 1);

        rename($this->directory->write('new.bin', 'new'), $path);

        self::assertTrue(self::bodyOf($first . ServerProcess::readAll($socket)) === $bytes);
    }

    private function server(): ServerProcess
    {
        return $this->serve($this->routes());
    }

    private function routes(): string
    {
        return '$routes->get("/{name}", static fn(string $name) => Response::file(' . var_export("{$this->directory->path}/", true) . ' . $name));';
    }
}
