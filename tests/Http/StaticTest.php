<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Http\StaticOptions;

/** `Router::static()`: what of a directory may be seen, and nothing else. */
final class StaticTest extends HttpTestCase
{
    private const ESCAPES = [
        '/assets/../secret.txt', '/assets/%2e%2e/secret.txt', '/assets/..%2fsecret.txt', '/assets/%2e%2e%2fsecret.txt', '/assets/css/../../secret.txt',
        '/assets/css/%2e%2e/%2e%2e/secret.txt', '/assets//etc/passwd', '/assets/%2fetc/passwd', '/assets/..\\secret.txt', '/assets/..%5csecret.txt',
        '/assets/%252e%252e/secret.txt', '/assets/....//secret.txt', '/assets/./css/site.css', '/assets/secret.txt%00.css', '/assets/css/site.css%00', '/assets/out.txt',
        '/assets/up.txt', '/assets/away/secret.txt', '/assets/.env', '/assets/.git/config', '/assets/%2eenv', '/assets/%2e%67it/config', '/assets/../public-secret.txt',
        '/assets/%c0%ae%c0%ae/secret.txt', '/assets/%ff', '/assets/..', '/assets/%2e%2e', '/assets/css/..', '/assets/.',
    ];

    private Directory $directory;

    protected function setUp(): void
    {
        $this->directory = new Directory();
        $this->directory->write('secret.txt', 'secret');
        $this->directory->write('public-secret.txt', 'secret');
        $this->directory->write('public/index.html', '<h1>top</h1>');
        $this->directory->write('public/css/site.css', 'body {}');
        $this->directory->write('public/sub/index.html', '<h1>sub</h1>');
        $this->directory->write('public/bare/a.txt', 'a');
        $this->directory->write('public/with space ä.txt', 'space');
        $this->directory->write('public/.env', 'secret');
        $this->directory->write('public/.git/config', 'secret');
        symlink("{$this->directory->path}/secret.txt", "{$this->directory->path}/public/out.txt");
        symlink('../secret.txt', "{$this->directory->path}/public/up.txt");
        symlink($this->directory->path, "{$this->directory->path}/public/away");
        symlink("{$this->directory->path}/public/css/site.css", "{$this->directory->path}/public/in.css");
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        $this->directory->remove();
    }

    public function testFilesDirectoriesAndTheirIndexAreFound(): void
    {
        $server = $this->server();

        foreach (['/assets/' => '<h1>top</h1>', '/assets/css/site.css' => 'body {}', '/assets/sub/' => '<h1>sub</h1>', '/assets/with%20space%20%C3%A4.txt' => 'space', '/assets/in.css' => 'body {}'] as $path => $body) {
            $response = $server->get($path);
            self::assertStatus(200, $response);
            self::assertSame($body, self::bodyOf($response));
        }
        self::assertStringContainsString("content-type: text/css; charset=utf-8\r\n", $server->get('/assets/css/site.css'));
        self::assertStatus(404, $server->get('/assets/bare/'));
        self::assertStatus(404, $server->get('/assets/missing'));
        self::assertStatus(404, $server->get('/assets/css/site.css/'));
        self::assertStatus(405, $server->get('/assets/css/site.css', '-X', 'POST'));
    }

    public function testNoPathLeadsOutOfTheDirectory(): void
    {
        $server = $this->server();
        foreach (self::ESCAPES as $path) {
            $response = $server->exchange("GET $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

            self::assertMatchesRegularExpression('/^HTTP\/1\.1 40[04] /', $response, $path);
            self::assertStringNotContainsString('secret', self::bodyOf($response), $path);
        }
    }

    public function testHiddenFilesAreSeenWhereThatIsAskedFor(): void
    {
        $server = $this->server(', new StaticOptions(hidden: true)');

        self::assertSame('secret', self::bodyOf($server->get('/assets/.env')));
        self::assertStatus(404, $server->get('/assets/..', '--path-as-is'));
    }

    public function testADirectoryWithoutItsSlashIsSentThereWithoutLeavingTheHost(): void
    {
        $server = $this->serve('$routes->static("", ' . var_export("{$this->directory->path}/public", true) . ');');
        mkdir("{$this->directory->path}/public/example.com", 0o777, true);

        self::assertStringContainsString("location: ./sub/?a=1\r\n", $server->get('/sub?a=1'));
        $response = $server->exchange("GET //example.com HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertDoesNotMatchRegularExpression('/^location: (?!\.\/)/m', $response);
        self::assertSame('<h1>top</h1>', self::bodyOf($server->get('/')));
        self::assertStringContainsString("location: ./assets/\r\n", $this->server()->get('/assets'));
    }

    public function testAllFilesMayBeKeptOnlyAsLongAsIsSaid(): void
    {
        self::assertStringContainsString("cache-control: no-cache\r\n", $this->server()->get('/assets/css/site.css'));
        $response = $this->server(', new StaticOptions(maxAge: 3600, immutable: true)')->get('/assets/css/site.css');
        self::assertStringContainsString("cache-control: public, max-age=3600, immutable\r\n", $response);
        self::assertStringContainsString("x-content-type-options: nosniff\r\n", $response);
    }

    public function testAClientGetsTheSiblingItHasACodingFor(): void
    {
        $this->directory->write('public/app.js', str_repeat('let a;', 100));
        $this->directory->write('public/app.js.gz', (string) gzencode('gzip'));
        $this->directory->write('public/app.js.br', 'brotli');
        $server = $this->server();
        $cases = ['gzip, br' => 'br', 'gzip' => 'gzip', 'br;q=0.1, gzip;q=0.9' => 'gzip', 'br;q=0, gzip;q=0, *' => '', 'identity' => '', 'zstd' => '', 'br;q=0.5, identity' => ''];

        foreach ($cases as $accept => $coding) {
            $response = $server->get('/assets/app.js', '-H', "Accept-Encoding: $accept");
            self::assertStatus(200, $response);
            self::assertSame($coding !== '', str_contains($response, "content-encoding: $coding\r\n"), $accept);
            self::assertStringContainsString("vary: accept-encoding\r\n", $response);
            self::assertStringContainsString("content-type: text/javascript; charset=utf-8\r\n", $response);
        }
        self::assertSame('gzip', $server->curl('/assets/app.js', '--compressed', '-H', 'Accept-Encoding: gzip')[1]);
        self::assertStringNotContainsString('vary', $server->get('/assets/css/site.css'));
        $this->tagsDiffer($server);
    }

    private function tagsDiffer(ServerProcess $server): void
    {
        $tag = static function (string $accept) use ($server): string {
            preg_match('/^etag: (.*)\r$/m', $server->get('/assets/app.js', '-H', "Accept-Encoding: $accept"), $found);

            return $found[1];
        };
        self::assertNotSame($tag('gzip'), $tag('identity'));
        self::assertStatus(304, $server->get('/assets/app.js', '-H', 'Accept-Encoding: gzip', '-H', "If-None-Match: {$tag('gzip')}"));
    }

    public function testASiblingThatIsALinkOutOfTheDirectoryIsNotSent(): void
    {
        symlink("{$this->directory->path}/secret.txt", "{$this->directory->path}/public/css/site.css.gz");

        self::assertSame('body {}', self::bodyOf($this->server()->get('/assets/css/site.css', '-H', 'Accept-Encoding: gzip')));
    }

    public function testRoutesBesideItStay(): void
    {
        $server = $this->serve('$routes->static("", ' . var_export("{$this->directory->path}/public", true) . ', new StaticOptions(index: null))->get("/css/site.css", static fn() => Response::text("mine"))->post("/{x}", static fn(string $x) => Response::text($x));');

        self::assertSame('mine', self::bodyOf($server->get('/css/site.css')));
        self::assertSame('a', self::bodyOf($server->get('/a', '-d', '')));
        self::assertStatus(404, $server->get('/'));
    }

    public function testADirectoryThatIsNotThereIsRefusedAtOnce(): void
    {
        $this->expectExceptionMessageMatches('/^the directory \/nowhere cannot be used: No such file/');

        (new \Weft\Http\Router())->static('/assets', '/nowhere');
    }

    /** @dataProvider ages */
    #[DataProvider('ages')]
    public function testACacheAgeIsNotNegative(float $age): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('maxAge must be at least 0 seconds, got ' . \var_export($age, true));

        new StaticOptions(maxAge: $age);
    }

    /** @return iterable<array{float}> */
    public static function ages(): iterable
    {
        yield 'below 0' => [-0.5];
        yield 'no number' => [\NAN];
    }

    public function testAnUnlimitedCacheAgeIsTheLongestThatCachesKnow(): void
    {
        self::assertSame('public, max-age=2147483648', (new StaticOptions(maxAge: \INF))->cacheControl());
    }

    private function server(string $more = ''): ServerProcess
    {
        return $this->serve('$routes->static("/assets", ' . var_export("{$this->directory->path}/public", true) . "$more);");
    }
}
