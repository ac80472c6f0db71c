<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Http\Directory;

/** `weft routes` and `weft openapi`. */
final class RoutesTest extends TestCase
{
    private Directory $directory;

    protected function setUp(): void
    {
        $this->directory = new Directory();
    }

    protected function tearDown(): void
    {
        $this->directory->remove();
    }

    public function testTheRoutesOfAnApplicationAreListedWithTheirHandlersAndItDoesNotRun(): void
    {
        $file = $this->program(<<<'PHP'
            final class Shop { public function place(Weft\Http\Request $request): Weft\Http\Response { return Weft\Http\Response::noContent(); } }
            $app = new Weft\App();
            $app->http('127.0.0.1:1')
                ->get('/', static fn() => null)->named('home')
                ->group('/shop', static fn($group) => $group->post('/orders', (new Shop())->place(...)));
            $app->run();
            PHP);

        $weft = Weft::run(['routes', $file]);

        self::assertSame(0, $weft->exitCode, $weft->errors);
        self::assertSame("GET   /             home  Closure {$file}:7\nPOST  /shop/orders  -     Shop::place() {$file}:4\n", $weft->output);
    }

    public function testWhatIsNoHandlerOfTheApplicationIsListedByWhatItIs(): void
    {
        $file = $this->program(<<<'PHP'
            $app = new Weft\App();
            $app->http('127.0.0.1:1')
                ->websocket('/chat', static fn(Weft\Http\WebSocket $socket) => null)
                ->static('/assets', __DIR__)
                ->openApi('/openapi.json', new Weft\Http\OpenApi('Shop'));
            $app->run();
            PHP);

        $lines = explode("\n", Weft::run(['routes', $file])->output);

        self::assertSame("GET  /chat              -  Closure {$file}:6", $lines[0]);
        self::assertStringEndsWith("-  files of {$this->directory->path}", $lines[1]);
        self::assertStringEndsWith("-  files of {$this->directory->path}", $lines[2]);
        self::assertStringEndsWith('-  the OpenAPI document', $lines[3]);
    }

    public function testARouterThatAFileReturnsWillDoAndAnAddressSelectsOneOfSeveral(): void
    {
        $router = $this->program("return (new Weft\\Http\\Router())->get('/a', static fn() => null);");
        self::assertStringContainsString('GET  /a', Weft::run(['routes', $router])->output);
        $two = $this->program("\$app = new Weft\\App(); \$app->http('127.0.0.1:1')->get('/a', static fn() => null); \$app->http('127.0.0.1:2')->get('/b', static fn() => null); \$app->run();");

        $refused = Weft::run(['openapi', $two]);
        self::assertSame(2, $refused->exitCode);
        self::assertMatchesRegularExpression('{127\.0\.0\.1:1,\s+127\.0\.0\.1:2}', $refused->errors);
        $document = json_decode(Weft::run(['openapi', $two, '--address=127.0.0.1:2'])->output, true, flags: JSON_THROW_ON_ERROR);
        self::assertSame(['/b'], array_keys($document['paths']));
    }

    public function testNamesInCommentsAreThoseOfTheProgram(): void
    {
        $item = $this->directory->write('Item.php', "<?php\n\nnamespace Shop;\n\nfinal class Item { public function __construct(public readonly string \$sku) {} }\n");
        $file = $this->program(<<<PHP
            use Shop\\Item;
            require '{$item}';
            \$app = new Weft\\App();
            \$app->http('127.0.0.1:1')->post('/items', /** @param list<Item> \$items */ static fn(#[Weft\\Http\\Body] array \$items): array => \$items);
            \$app->run();
            PHP);

        $weft = Weft::run(['openapi', $file]);

        self::assertSame(0, $weft->exitCode, $weft->errors);
        self::assertArrayHasKey('Item', json_decode($weft->output, true, flags: JSON_THROW_ON_ERROR)['components']['schemas']);
    }

    public function testAFileWithoutRoutesIsRefused(): void
    {
        foreach (['routes', 'openapi'] as $command) {
            $weft = Weft::run([$command, $this->program('')]);
            self::assertSame(1, $weft->exitCode);
            self::assertStringContainsString('must run a Weft\App', $weft->errors);
            self::assertStringContainsString('There is no file /nowhere.php', Weft::run([$command, '/nowhere.php'])->errors);
        }
    }

    private function program(string $code): string
    {
        return $this->directory->write(bin2hex(random_bytes(4)) . '.php', "<?php\n\nrequire_once '" . \dirname(__DIR__, 2) . "/autoload.php';\n$code\n");
    }
}
