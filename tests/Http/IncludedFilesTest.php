<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Port;
use Weft\Tests\Cli\Supervised;

require_once __DIR__ . '/../../bench/autoload.php';

/** `require_once` in a classic application: what a request includes runs for each request, as under PHP-FPM. */
final class IncludedFilesTest extends TestCase
{
    private string $directory;
    private string $address;
    private ?Supervised $server = null;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-included-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
        $this->address = '127.0.0.1:' . Port::free();
    }

    protected function tearDown(): void
    {
        $this->server?->signal(\SIGTERM);
        $this->server?->end();
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testAFileThatChecksWhoHasLoggedInRunsForEachRequest(): void
    {
        $this->serve([
            'index.php' => "require_once __DIR__ . '/functions.php'; require_once __DIR__ . '/config.php'; require_once __DIR__ . '/auth.php'; echo greeting(\$name), ' ', LIMIT, MODE, ROOT;",
            'functions.php' => 'function greeting(string $name): string { return (new Greeter())->greet($name); } final class Greeter extends Base { } abstract class Base { public function greet(string $name): string { return "secret of $name"; } }',
            'config.php' => 'const LIMIT = 3; const ROOT = __DIR__ === ""; define("MODE", ["x"][0]); $name = $_GET["name"] ?? "nobody"; header("X-Config: read");',
            'auth.php' => 'if (!isset($_GET["token"])) { http_response_code(403); exit("forbidden"); }',
        ]);
        foreach ([['?name=ada&token=1', 200, 'secret of ada 3x'], ['?name=eve', 403, 'forbidden'], ['', 403, 'forbidden'], ['?token=1', 200, 'secret of nobody 3x']] as [$query, $status, $body]) {
            $answer = $this->get("/$query");
            self::assertSame([$status, $body], [$answer->status, (string) $answer->body], $query);
            self::assertContains('x-config: read', \array_map('strtolower', $answer->headers));
        }
    }

    public function testRequestsThatOverlapIncludeTheSameFiles(): void
    {
        $this->serve([
            'index.php' => 'usleep(50_000); require_once __DIR__ . "/functions.php"; usleep(50_000); require_once __DIR__ . "/config.php"; require __DIR__ . "/count.php"; '
                . 'echo greeting($name), " ", count(array_unique(get_included_files()));',
            'functions.php' => 'if (!function_exists("greeting")) { function greeting(string $name): string { return "hello $name"; } }',
            'config.php' => 'usleep(20_000); $name = $_GET["name"];',
            'count.php' => '$count = 1;',
        ]);
        $requests = [];
        for ($i = 0; $i < 8; $i++) {
            $requests[$i] = \stream_socket_client("tcp://{$this->address}");
            \fwrite($requests[$i], "GET /?name=$i HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }
        $files = null;
        foreach ($requests as $i => $request) {
            [, $body] = \explode("\r\n\r\n", (string) \stream_get_contents($request), 2);
            self::assertMatchesRegularExpression("/^hello $i \\d+$/", $body);
            $files ??= \substr($body, -2);
            self::assertSame($files, \substr($body, -2), 'each has included the same files');
        }
    }

    public function testAFileThatDeclaresAndDoesMoreIsNamedInTheLog(): void
    {
        $this->serve([
            'index.php' => 'require_once __DIR__ . "/pure.php"; require_once __DIR__ . "/mixed.php"; echo pure(), mixed(), " ", get_class(require __DIR__ . "/container.php");',
            'container.php' => 'class_exists("Container", false) || class_alias(More\More::class, "Container"); return new Container();',
            'pure.php' => 'defined("PURE") || define("PURE", 1); require_once __DIR__ . "/more.php"; function pure(): string { return "pure "; }',
            'more.php' => 'namespace More; \defined("MORE") || define("MORE", 1); final class More {}',
            'mixed.php' => 'function mixed(): string { return "mixed"; } $user = strtolower($_GET["user"] ?? "");',
        ]);
        self::assertSame('pure mixed More\\More', (string) $this->get('/')->body);
        self::assertSame('pure mixed More\\More', (string) $this->get('/')->body);
        $this->server->signal(\SIGTERM);
        $this->server->end();

        self::assertSame(1, \substr_count($this->server->other, "weft: {$this->directory}/mixed.php declares functions or classes and does more than that."), $this->server->other);
        self::assertSame(1, \substr_count($this->server->other, 'declares functions'), $this->server->other);
        $this->server = null;
    }

    public function testAnAutoloaderIsRegisteredOnce(): void
    {
        $this->serve([
            'index.php' => 'require_once __DIR__ . "/autoload.php"; echo count(spl_autoload_functions()), " ", (new Loaded())->name;',
            'autoload.php' => 'spl_autoload_register(static function (string $class): void { $class === "Loaded" && require __DIR__ . "/Loaded.php"; });',
            'Loaded.php' => 'final class Loaded { public string $name = "loaded"; }',
        ]);
        $first = (string) $this->get('/')->body;

        self::assertMatchesRegularExpression('/^\d+ loaded$/', $first);
        self::assertSame($first, (string) $this->get('/')->body);
    }

    public function testTheScriptHasTheVariablesAndTheStatusOfACgiProgram(): void
    {
        $this->serve(['index.php' => 'header("Status: 404 Not Found"); echo json_encode([$_SERVER["PATH_INFO"] ?? null, $_SERVER["PHP_SELF"], $_SERVER["SERVER_PORT"], is_string($_SERVER["REMOTE_PORT"])]);']);
        $port = \substr((string) \strrchr($this->address, ':'), 1);
        foreach (['/index.php/a%20b/c?x=1' => ['/a b/c', '/index.php/a b/c'], '/index.php' => [null, '/index.php'], '/other' => [null, '/index.php']] as $path => $expected) {
            $answer = $this->get($path);
            self::assertSame([404, \json_encode([...$expected, $port, true])], [$answer->status, (string) $answer->body]);
            self::assertStringNotContainsString('status:', \strtolower(\implode("\n", $answer->headers)));
        }
    }

    public function testAConstantThatGetsAnotherValueIsWarnedOfAndKeepsIts(): void
    {
        $this->serve(['index.php' => 'define("USER", $_GET["user"]); echo USER;']);

        self::assertSame('ada', (string) $this->get('/?user=ada')->body);
        self::assertMatchesRegularExpression('/Constant USER already defined.*ada$/s', (string) $this->get('/?user=eve')->body);
    }

    /** @param array<string, string> $files code by name */
    private function serve(array $files): void
    {
        foreach ($files as $name => $code) {
            \file_put_contents("{$this->directory}/$name", "<?php $code");
        }
        \file_put_contents("{$this->directory}/app.php", \sprintf(
            '<?php require %s; ini_set("display_errors", "1"); $app = new Weft\App(); $app->http(%s)->fallback(Weft\Http\RealmHandler::script(__DIR__ . "/index.php", size: 8)); $app->run();',
            \var_export(\dirname(__DIR__, 2) . '/autoload.php', true),
            \var_export($this->address, true),
        ));
        $this->server = new Supervised("{$this->directory}/app.php", ['--workers=1']);
        $this->server->wait('is ready');
    }

    private function get(string $path): HttpAnswer
    {
        return HttpAnswer::of("http://{$this->address}$path", ['timeout' => 60, 'header' => 'Connection: close']);
    }
}
