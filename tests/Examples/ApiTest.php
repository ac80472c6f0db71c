<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Port;
use Weft\Tests\Cli\Supervised;
use Weft\Tests\Cli\Weft;
use Weft\Tests\Http\Directory;

require_once __DIR__ . '/../../bench/autoload.php';

/** The example of a JSON API, and a client that is made of its OpenAPI document. */
final class ApiTest extends TestCase
{
    private const PROGRAM = __DIR__ . '/../../examples/api/app.php';
    private const TOOLS = __DIR__ . '/../../var/openapi';

    private int $port;
    private ?Supervised $api = null;
    private Directory $directory;
    private string|false $temporary;

    protected function setUp(): void
    {
        $this->directory = new Directory();
        $this->temporary = \getenv('TMPDIR');
        \putenv("TMPDIR={$this->directory->path}");
    }

    protected function tearDown(): void
    {
        $this->api?->signal(\SIGTERM);
        $this->api?->end();
        $this->directory->remove();
        \putenv($this->temporary === false ? 'TMPDIR' : "TMPDIR={$this->temporary}");
    }

    public function testAClientMadeOfTheDocumentCallsTheApi(): void
    {
        if (!\is_file(self::TOOLS . '/versions')) {
            self::markTestSkipped('openapi-typescript is not installed: scripts/openapi-tools');
        }
        $this->open();
        $directory = new Directory();
        try {
            \file_put_contents("$directory->path/openapi.json", Weft::run(['openapi', self::PROGRAM])->output);
            \copy(__DIR__ . '/api-client.ts', "$directory->path/client.ts");
            \file_put_contents("$directory->path/package.json", '{"type": "module"}');
            \symlink((string) \realpath(self::TOOLS . '/node_modules'), "$directory->path/node_modules");
            $bin = "$directory->path/node_modules/.bin";

            self::command("$bin/openapi-typescript $directory->path/openapi.json -o $directory->path/api.ts");
            self::command("$bin/tsc --strict --module nodenext --target es2022 --lib es2023,dom --skipLibCheck $directory->path/node.d.ts $directory->path/client.ts", $directory->path);
            $result = \json_decode(self::command("node $directory->path/client.js http://127.0.0.1:$this->port token-of-the-test"), true, flags: \JSON_THROW_ON_ERROR);

            self::assertSame([
                'status' => 201, 'id' => 1, 'email' => null, 'title' => 'Weaving', 'published' => '2026-01-02T03:04:05.000000+00:00', 'count' => 1,
                'pointers' => ['#/title', '#/pages'], 'removed' => 204, 'missing' => 'There is no book 1',
            ], $result);
        } finally {
            $directory->remove();
        }
    }

    public function testAProgramIsKnownByItsToken(): void
    {
        $this->open();
        $book = ['-H', 'content-type: application/json', '-d', '{"title": "Weaving", "genre": "craft", "pages": 320}'];

        foreach ([[], ['-H', 'authorization: Bearer wrong'], ['-H', 'authorization: Basic dG9rZW4='], ['-b', 'session=' . \str_repeat('x', 43)]] as $wrong) {
            [$status, $head, $body] = $this->request('/books', ...$book, ...$wrong);
            self::assertSame([401, 'Log in first'], [$status, \json_decode($body, true)['detail']]);
            self::assertStringContainsString('www-authenticate: Bearer', $head);
        }
        self::assertSame(201, $this->request('/books', '-H', 'authorization: Bearer token-of-the-test', ...$book)[0]);
        self::assertCount(1, \json_decode($this->request('/books')[2], true));
    }

    public function testABrowserLogsInAndOut(): void
    {
        $this->open();
        $login = fn(string $password, string ...$more): array => $this->request('/login', '-H', 'content-type: application/json', '-d', \json_encode(['name' => 'ada', 'password' => $password]), ...$more);
        $delete = fn(string $cookie, string ...$more): int => $this->request('/books/1', '-X', 'DELETE', '-b', $cookie, ...$more)[0];

        self::assertSame(401, $login('wrong')[0]);
        self::assertSame(403, $login('password-of-the-test', '-H', 'sec-fetch-site: cross-site')[0]);
        [$status, $head, $body] = $login('password-of-the-test', '-H', 'sec-fetch-site: same-origin');
        self::assertSame([200, '{"id":1,"name":"ada"}'], [$status, $body]);
        \preg_match('/^set-cookie: (session=[\w-]+);.*HttpOnly; SameSite=Lax/m', $head, $cookie);
        self::assertSame(204, $delete($cookie[1], '-H', 'sec-fetch-site: same-origin'));
        self::assertSame(403, $delete($cookie[1], '-H', 'origin: https://evil.example'));
        self::assertSame(204, $this->request('/logout', '-X', 'POST', '-b', $cookie[1])[0]);
        self::assertSame(401, $delete($cookie[1]));
    }

    public function testTheServerHasTheDocumentThatTheCommandPrints(): void
    {
        $this->open();

        self::assertSame(Weft::run(['openapi', self::PROGRAM])->output, \file_get_contents("http://127.0.0.1:$this->port/openapi.json"));
    }

    private function open(): void
    {
        $this->port = Port::free();
        $environment = ['PORT' => (string) $this->port, 'TOKEN' => 'token-of-the-test', 'PASSWORD' => 'password-of-the-test', 'WEFT_ENV' => 'development', 'TMPDIR' => $this->directory->path];
        $this->api = new Supervised(self::PROGRAM, ['--workers=1'], $environment);
        $this->api->wait('is ready');
    }

    /** @return array{int, string, string} status, head and body */
    private function request(string $path, string ...$arguments): array
    {
        $command = \implode(' ', \array_map('escapeshellarg', ['curl', '-sS', '-i', ...$arguments, "http://127.0.0.1:$this->port$path"]));
        [$head, $body] = \explode("\r\n\r\n", (string) \shell_exec($command), 2) + ['', ''];

        return [(int) \substr($head, 9, 3), $head, $body];
    }

    private static function command(string $command, ?string $directory = null): string
    {
        $directory === null || \file_put_contents("$directory/node.d.ts", 'declare const process: { argv: string[] };');
        \exec("$command 2>&1", $output, $code);
        self::assertSame(0, $code, "$command:\n" . \implode("\n", $output));

        return \implode("\n", $output);
    }
}
