<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Timing;

/** Forms with files, sent by curl and, where they are wrong, by hand. */
final class UploadTest extends HttpTestCase
{
    private const ECHO = <<<'PHP'
        $routes->post("/", static function (Request $r) {
            $files = array_map(static fn($u) => [$u->field, $u->name, $u->type, $u->size, sha1_file($u->path()), decoct(fileperms($u->path()) & 0777)], $r->uploads(new FormLimits(parts: 20, fieldBytes: 100_000, fileBytes: 30_000_000, directory: DIRECTORY)));
            return Response::json([$r->form(), $files]);
        });
        PHP;

    private Directory $directory;

    protected function setUp(): void
    {
        $this->directory = new Directory();
        mkdir("{$this->directory->path}/uploads");
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        $this->directory->remove();
    }

    public function testValuesAndFilesOfEverySizeArrive(): void
    {
        $server = $this->server();
        $arguments = ['-F', 'title=Käse & Co', '-F', 'tags[]=a', '-F', 'tags[]=b', '-F', 'address[city]=X', '-F', 'title=last'];
        $expected = [];
        foreach ([0, 1, 65_535, 262_144, 262_145, 5_000_000] as $size) {
            $bytes = $size === 0 ? '' : random_bytes($size);
            $path = $this->directory->write("f$size.bin", $bytes);
            array_push($arguments, '-F', "file[$size]=@$path;type=image/x-$size");
            $expected[] = ["file[$size]", "f$size.bin", "image/x-$size", $size, sha1($bytes), '600'];
        }

        foreach (['--http1.1', '--http2-prior-knowledge'] as $protocol) {
            [, $output] = $server->curl('/', $protocol, ...$arguments);
            self::assertSame([['title' => 'last', 'tags' => ['a', 'b'], 'address' => ['city' => 'X']], $expected], json_decode($output, true), $output);
        }
        self::assertSame([], $this->uploads());
    }

    public function testFilesOfAFormTakeNoDescriptorsAndThereAreTwentyOfThemAtMost(): void
    {
        $server = $this->serve('$routes->post("/", static function (Request $r) { $open = static fn() => count(scandir("/proc/self/fd")); $before = $open(); $uploads = $r->uploads(); return Response::json([count($uploads), $open() - $before, $uploads[19]->contents()]); });');
        $path = $this->directory->write('small.txt', 'small');
        $files = array_merge(...array_map(static fn(int $index): array => ['-F', "file[$index]=@$path"], range(1, 20)));

        self::assertSame('[20,0,"small"]', self::bodyOf($server->get('/', ...$files)));
        $tooMany = $server->get('/', '-F', "more=@$path", ...$files);
        self::assertStatus(413, $tooMany);
        self::assertStringContainsString('more than 20 files', $tooMany);
    }

    public function testAFormOfTheOtherKindIsReadByTheSameMethods(): void
    {
        self::assertSame('[{"a":"1","b":["2"]},[]]', self::bodyOf($this->server()->get('/', '-d', 'a=1&b[]=2')));
    }

    /** @dataProvider contentTypes */
    #[DataProvider('contentTypes')]
    public function testABodyOfAnotherContentTypeIsNoForm(int $status, string $fields, string $body): void
    {
        $response = $this->server()->exchange("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " . \strlen($body) . "\r\n$fields\r\n$body");

        self::assertStatus($status, $response);
        self::assertSame($status === 415 ? 'application/x-www-form-urlencoded, multipart/form-data' : '', self::field($response, 'accept-post'));
    }

    /** @return iterable<string, array{int, string, string}> */
    public static function contentTypes(): iterable
    {
        yield 'a form' => [200, "Content-Type: Application/X-WWW-Form-URLEncoded ; charset=utf-8\r\n", 'a=1'];
        yield 'an empty form' => [200, "Content-Type: application/x-www-form-urlencoded\r\n", ''];
        yield 'no body' => [200, '', ''];
        yield 'bytes without a type' => [415, '', 'a=1'];
        yield 'JSON' => [415, "Content-Type: application/json\r\n", '{"a":1}'];
        yield 'text' => [415, "Content-Type: text/plain\r\n", 'a=1&admin=1'];
        yield 'parts of another kind' => [415, "Content-Type: multipart/mixed; boundary=XX\r\n", '--XX--'];
        yield 'a type that begins like a form' => [415, "Content-Type: application/x-www-form-urlencoded+x\r\n", 'a=1'];
        yield 'a type that begins like parts' => [415, "Content-Type: multipart/form-data-x; boundary=XX\r\n", '--XX--'];
    }

    public function testAnUploadIsKeptWhereItIsMovedAndDeletedWhereItIsNot(): void
    {
        $to = "{$this->directory->path}/kept.txt";
        $server = $this->serve(strtr(<<<'PHP'
            $routes->post("/", static function (Request $r) {
                $upload = $r->upload("f", new FormLimits(directory: DIRECTORY));
                $contents = $upload->contents();
                $upload->moveTo(TO);
                return Response::json([$contents, $upload->path(), $upload->contents(), $r->upload("none")]);
            })->post("/nowhere", static fn(Request $r) => $r->upload("f", new FormLimits(directory: DIRECTORY))->moveTo("/nowhere/x"))
              ->post("/throws", static function (Request $r) { $r->uploads(new FormLimits(directory: DIRECTORY)); throw new HttpException(409); });
            PHP, ['TO' => var_export($to, true), 'DIRECTORY' => var_export("{$this->directory->path}/uploads", true)]));

        $response = $server->get('/', '-F', 'f=first;filename=a.txt', '-F', 'f=hello;filename=b.txt');
        self::assertSame(['hello', $to, 'hello', null], json_decode(self::bodyOf($response), true), $response);
        self::assertSame('hello', file_get_contents($to));
        self::assertSame('644', decoct(fileperms($to) & 0o777));
        self::assertStatus(500, $server->get('/nowhere', '-F', 'f=x;filename=a.txt'));
        self::assertTrue($server->awaitLog('the upload cannot be moved to /nowhere/x: No such file or directory'));
        self::assertStatus(409, $server->get('/throws', '-F', 'f=x;filename=a.txt'));
        self::assertSame([], $this->uploads());
    }

    public function testAMoveToAnotherFileSystemCopies(): void
    {
        if (!is_writable('/dev/shm') || stat('/dev/shm')['dev'] === stat($this->directory->path)['dev']) {
            self::markTestSkipped('/dev/shm is no other file system');
        }
        $to = '/dev/shm/weft-' . bin2hex(random_bytes(8));
        $server = $this->serve('$routes->post("/", static function (Request $r) { $r->upload("f", new FormLimits(directory: ' . var_export("{$this->directory->path}/uploads", true) . '))->moveTo(' . var_export($to, true) . '); return Response::noContent(); });');

        try {
            self::assertStatus(204, $server->get('/', '-F', 'f=hello;filename=a.txt'));
            self::assertSame('hello', file_get_contents($to));
            self::assertSame([], $this->uploads());
        } finally {
            @unlink($to);
        }
    }

    public function testNamesOfClientsAreMadeSafe(): void
    {
        $part = static fn(string $name): string => "--XX\r\nContent-Disposition: form-data; name=f; filename=\"$name\"\r\n\r\nx\r\n";
        $names = ['../../etc/passwd', 'C:\\dir\\a.txt', "b\xff.txt", '.htaccess', '..', "a\u{202e}gpj.exe", 'a b.txt', str_repeat('n', 300) . '.jpeg', 'x.php '];
        $body = implode('', array_map($part, $names)) . '--XX--';

        $response = $this->server()->exchange(self::post($body));

        self::assertSame(['passwd', 'a.txt', 'b_.txt', 'htaccess', 'file', 'agpj.exe', 'a b.txt', str_repeat('n', 250) . '.jpeg', 'x.php'], array_column(json_decode(self::bodyOf($response), true)[1], 1), $response);
    }

    public function testAFieldInWhichNoFileWasChosenIsNoUpload(): void
    {
        $body = "--XX\r\nContent-Disposition: form-data; name=f; filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n--XX--";

        self::assertSame('[[],[]]', self::bodyOf($this->server()->exchange(self::post($body))));
    }

    /** @dataProvider refused */
    #[DataProvider('refused')]
    public function testAMalformedOrTooLargeFormIsRefusedAndLeavesNoFiles(int $status, string $reason, string $request): void
    {
        $server = $this->server();

        $response = $server->exchange($request);

        self::assertStatus($status, $response);
        self::assertStringContainsString($reason, self::bodyOf($response));
        self::assertSame([], $this->uploads());
        self::assertStatus(200, $server->get('/', '-F', 'a=b'));
    }

    /** @return iterable<string, array{int, string, string}> */
    public static function refused(): iterable
    {
        $file = static fn(string $contents): string => "--XX\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\n$contents\r\n";
        $value = static fn(string $name, string $contents): string => "--XX\r\nContent-Disposition: form-data; name=$name\r\n\r\n$contents\r\n";
        yield 'no boundary' => [415, 'not multipart/form-data with a boundary', self::post('x', 'multipart/form-data')];
        yield 'no end' => [400, 'without its last boundary', self::post($file('x'))];
        yield 'nothing' => [400, 'without its last boundary', self::post('')];
        yield 'a part without a name' => [400, 'a part has no name', self::post("--XX\r\nX: y\r\n\r\n\r\n--XX--")];
        yield 'a file that breaks off' => [400, 'without its last boundary', self::post(substr($file(str_repeat('x', 600_000)), 0, -2))];
        yield 'too many parts' => [413, 'more than 20 parts', self::post(str_repeat($value('a', 'b'), 21) . '--XX--')];
        yield 'a long head' => [413, 'more than 8192 bytes', self::post("--XX\r\nX: " . str_repeat('y', 9_000) . "\r\n\r\n--XX--")];
        yield 'long values' => [413, 'more than 100000 bytes', self::post($value('a', str_repeat('b', 99_000)) . $value('a', str_repeat('b', 2_000)) . '--XX--')];
        yield 'long names' => [413, 'more than 100000 bytes', self::post(str_repeat($value(str_repeat('a', 8_000), ''), 14) . '--XX--')];
        yield 'a body over the limit' => [413, '413', "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=XX\r\nContent-Length: 200000000\r\n\r\n"];
    }

    public function testAFileOverTheLimitIsRefusedWhileItArrives(): void
    {
        $server = $this->server();
        $path = $this->directory->write('huge.bin', str_repeat('x', 31_000_000));

        $response = $server->get('/', '-H', 'Expect:', '-F', "f=@$path");

        self::assertStatus(413, $response);
        self::assertStringContainsString('the file "f" of the form has more than 30000000 bytes', $response);
        self::assertSame([], $this->uploads());
    }

    public function testAClientThatGoesAwayInTheMiddleLeavesNothing(): void
    {
        $server = $this->server();
        $socket = $server->connect();
        fwrite($socket, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=XX\r\nContent-Length: 2000000\r\n\r\n--XX\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\n" . str_repeat('x', 1_000_000));
        Timing::until(fn(): bool => $this->uploads() !== [], 'the upload has begun');

        fclose($socket);

        Timing::until(fn(): bool => $this->uploads() === [], 'nothing is left of the upload');
        self::assertSame([], $this->uploads());
    }

    public function testUploadsAreNotInMemory(): void
    {
        $server = $this->server();
        $path = $this->directory->write('large.bin', str_repeat('x', 29_000_000));
        $server->get('/', '-F', "f=@$path");
        $before = $server->resident();

        for ($i = 0; $i < 3; $i++) {
            self::assertStatus(200, $server->get('/', '-H', 'Expect:', '-F', "f=@$path", '-F', "g=@$path"));
        }

        self::assertLessThan($before + 8_192, $server->resident());
    }

    public function testADirectoryThatIsFullOrMissingIsNamedInTheLogAndNotInTheAnswer(): void
    {
        $server = $this->serve('$routes->post("/", static fn(Request $r) => Response::json($r->form(new FormLimits(directory: "/nowhere"))));');

        $response = $server->get('/', '-F', 'f=x;filename=a');

        self::assertStatus(500, $response);
        self::assertStringNotContainsString('/nowhere', $response);
        self::assertTrue($server->awaitLog('an upload cannot be kept in /nowhere: No such file or directory'));
    }

    public function testMoreValuesThanPhpTakesAreRefusedRatherThanLost(): void
    {
        $server = $this->server();

        self::assertStatus(200, $server->get('/', '-d', implode('&', array_fill(0, 1_000, 'a[]=1'))));
        $response = $server->get('/', '-d', implode('&', array_fill(0, 1_001, 'a[]=1')));
        self::assertStatus(413, $response);
        self::assertStringContainsString('The form has more than 1000 values (max_input_vars)', $response);
    }

    public function testNamesThatAreNestedDeeperThanPhpTakesAreRefusedRatherThanLost(): void
    {
        $server = $this->server('$routes->get("/query", static fn(Request $r): array => array_keys($r->queryParameters()));');
        $deep = static fn(int $levels): string => 'a' . str_repeat('[x]', $levels);

        self::assertStatus(200, $server->get('/', '-d', 'b=1&' . $deep(64) . '=1'));
        self::assertStatus(200, $server->get('/', '-d', 'b=1&c=' . $deep(70) . '&d[' . str_repeat('[', 70) . ']=1'));
        self::assertSame('["a"]', self::bodyOf($server->get('/query?' . $deep(64), '-g')));
        foreach ([['/', '-d', 'b=1&' . $deep(65) . '=1'], ['/', '-d', 'b=1&' . rawurlencode($deep(65)) . '=1'], ['/', '-F', $deep(65) . '=1'], ['/query?' . $deep(65), '-g']] as $arguments) {
            $response = $server->get(...$arguments);
            self::assertStatus(413, $response);
            self::assertStringContainsString('has a value that is nested deeper than 64 levels (max_input_nesting_level)', $response);
        }
        self::assertStringNotContainsString('max_input_nesting_level', $server->log());
    }

    /** Whatever arrives, the server answers or closes, keeps nothing, and serves the next one. */
    public function testRandomFormsHarmNothing(): void
    {
        $server = $this->server();
        $random = new \Random\Randomizer(new \Random\Engine\Mt19937(11));
        $pieces = ["--XX\r\n", '--XX--', '--XX', "\r\n", "\r\n\r\n", 'Content-Disposition: form-data; name=a', '; filename="x"', ': ', '"', '\\', "\0", str_repeat('x', 5_000), '--', "\n", 'a[b]', "\xff"];
        for ($round = 0; $round < 300; $round++) {
            $body = '';
            for ($i = $random->getInt(0, 25); $i > 0; $i--) {
                $body .= $pieces[$random->getInt(0, \count($pieces) - 1)];
            }

            self::assertMatchesRegularExpression('/^HTTP\/1\.1 (200|400|413|415) /', $server->exchange(self::post($body)), base64_encode($body));
        }
        self::assertSame([], $this->uploads());
        self::assertSame('', $server->log());
    }

    private function server(string $routes = ''): ServerProcess
    {
        return $this->serve(str_replace('DIRECTORY', var_export("{$this->directory->path}/uploads", true), self::ECHO) . $routes, ', limits: new Limits(body: new BodyLimits(bytes: 100_000_000))');
    }

    private static function post(string $body, string $type = 'multipart/form-data; boundary=XX'): string
    {
        return "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: $type\r\nContent-Length: " . \strlen($body) . "\r\n\r\n$body";
    }

    /** @return list<string> */
    private function uploads(): array
    {
        return array_values(array_diff((array) scandir("{$this->directory->path}/uploads"), ['.', '..']));
    }
}
