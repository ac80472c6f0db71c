<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;

/** The files beside a front controller: sent as they are; everything else is the application's. */
final class PublicDirectoryTest extends HttpTestCase
{
    private Directory $directory;

    protected function setUp(): void
    {
        $this->directory = new Directory();
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        $this->directory->remove();
    }

    public function testFilesAreSentAsTheyAre(): void
    {
        $this->directory->write('public/css/site.css', 'body {}');
        $server = $this->serveDirectory();

        $response = $server->get('/css/site.css');

        self::assertStatus(200, $response);
        self::assertSame('body {}', self::bodyOf($response));
        self::assertStringContainsString("cache-control: no-cache\r\n", $response);
        self::assertStringContainsString("x-content-type-options: nosniff\r\n", $response);
        self::assertSame('', self::bodyOf($server->get('/css/site.css', '--head')));
    }

    /**
     * @dataProvider requestsOfTheApplication
     *
     * @param list<string> $arguments
     */
    #[DataProvider('requestsOfTheApplication')]
    public function testEverythingElseIsTheApplications(string $path, array $arguments = []): void
    {
        foreach (['index.php', 'info.phtml', 'tool.phar', 'css/site.css', '.env', 'a.php/b.txt'] as $name) {
            $this->directory->write("public/$name", 'contents');
        }
        $this->directory->write('secret.txt', 'contents');
        $server = $this->serveDirectory();

        self::assertSame('application', self::bodyOf($server->get($path, '--path-as-is', ...$arguments)));
    }

    /** @return iterable<string, array{0: string, 1?: list<string>}> */
    public static function requestsOfTheApplication(): iterable
    {
        yield 'the front page' => ['/'];
        yield 'no file' => ['/customers/7'];
        yield 'a directory' => ['/css'];
        yield 'a directory, with a slash' => ['/css/'];
        yield 'a POST to a file' => ['/css/site.css', ['-X', 'POST']];
        yield 'the front controller' => ['/index.php'];
        yield 'source code in capitals' => ['/INDEX.PHP'];
        yield 'source code with an encoded letter' => ['/index%2ephp'];
        yield 'a template' => ['/info.phtml'];
        yield 'an archive' => ['/tool.phar'];
        yield 'a path behind source code' => ['/a.php/b.txt'];
        yield 'a hidden file' => ['/.env'];
        yield 'a file above' => ['/../secret.txt'];
        yield 'a file above, encoded' => ['/%2e%2e/secret.txt'];
    }

    public function testAnOptionalDirectoryMayBeMadeLater(): void
    {
        $server = $this->serveDirectory(', isOptional: true');
        self::assertSame('application', self::bodyOf($server->get('/robots.txt')));

        $this->directory->write('public/robots.txt', 'User-agent: *');

        self::assertSame('User-agent: *', self::bodyOf($server->get('/robots.txt')));
    }

    private function serveDirectory(string $arguments = ''): ServerProcess
    {
        $path = var_export("{$this->directory->path}/public", true);

        return $this->serve("\$routes->fallback(new Weft\\Http\\Internal\\PublicDirectory($path, static fn(Request \$request): Response => Response::text('application')$arguments));");
    }
}
