<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Port;
use Weft\Tests\Cli\Supervised;
use Weft\Tests\Cli\Weft;
use Weft\Tests\Http\Folder;

require_once __DIR__ . '/../../bench/autoload.php';

/** The example of a JSON API, and a client that is made of its OpenAPI document. */
final class ApiTest extends TestCase
{
    private const PROGRAM = __DIR__ . '/../../examples/api/app.php';
    private const TOOLS = __DIR__ . '/../../var/openapi';

    private int $port;
    private ?Supervised $api = null;

    protected function tearDown(): void
    {
        $this->api?->signal(\SIGTERM);
        $this->api?->end();
    }

    public function testAClientMadeOfTheDocumentCallsTheApi(): void
    {
        if (!\is_file(self::TOOLS . '/versions')) {
            self::markTestSkipped('openapi-typescript is not installed: scripts/openapi-tools');
        }
        $this->open();
        $folder = new Folder();
        try {
            \file_put_contents("$folder->path/openapi.json", Weft::run(['openapi', self::PROGRAM])->output);
            \copy(__DIR__ . '/api-client.ts', "$folder->path/client.ts");
            \file_put_contents("$folder->path/package.json", '{"type": "module"}');
            \symlink((string) \realpath(self::TOOLS . '/node_modules'), "$folder->path/node_modules");
            $bin = "$folder->path/node_modules/.bin";

            self::command("$bin/openapi-typescript $folder->path/openapi.json -o $folder->path/api.ts");
            self::command("$bin/tsc --strict --module nodenext --target es2022 --lib es2023,dom --skipLibCheck $folder->path/node.d.ts $folder->path/client.ts", $folder->path);
            $result = \json_decode(self::command("node $folder->path/client.js http://127.0.0.1:$this->port"), true, flags: \JSON_THROW_ON_ERROR);

            self::assertSame([
                'status' => 201, 'id' => 1, 'email' => null, 'title' => 'Weaving', 'published' => '2026-01-02T03:04:05.000000+00:00', 'count' => 1,
                'pointers' => ['#/title', '#/pages'], 'removed' => 204, 'missing' => 'There is no book 1',
            ], $result);
        } finally {
            $folder->remove();
        }
    }

    public function testTheServerHasTheDocumentThatTheCommandPrints(): void
    {
        $this->open();

        self::assertSame(Weft::run(['openapi', self::PROGRAM])->output, \file_get_contents("http://127.0.0.1:$this->port/openapi.json"));
    }

    private function open(): void
    {
        $this->port = Port::free();
        $this->api = new Supervised(self::PROGRAM, ['--workers=1'], ['PORT' => (string) $this->port]);
        $this->api->wait('is ready');
    }

    private static function command(string $command, ?string $folder = null): string
    {
        $folder === null || \file_put_contents("$folder/node.d.ts", 'declare const process: { argv: string[] };');
        \exec("$command 2>&1", $output, $code);
        self::assertSame(0, $code, "$command:\n" . \implode("\n", $output));

        return \implode("\n", $output);
    }
}
