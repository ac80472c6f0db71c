<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Port;
use Weft\Bench\Server;

require_once __DIR__ . '/../../bench/autoload.php';

/** Runs the programs of pages in docs/ and compares what they say they give: `$value = …; // expected`. */
final class DocumentsTest extends TestCase
{
    private string $folder;

    protected function setUp(): void
    {
        $this->folder = \sys_get_temp_dir() . '/weft-docs-' . \bin2hex(\random_bytes(6));
        \mkdir($this->folder);
    }

    protected function tearDown(): void
    {
        \array_map('unlink', \glob("{$this->folder}/*") ?: []);
        \rmdir($this->folder);
    }

    public static function pages(): iterable
    {
        yield 'sagas' => ['sagas', 5];
        yield 'locks' => ['locks', 2];
        yield 'event-sourcing' => ['event-sourcing', 5];
    }

    /** @dataProvider pages */
    public function testTheProgramOfThePageGivesWhatItSays(string $page, int $values): void
    {
        // Also where the call ends some lines later: `}); // expected`.
        $program = \preg_replace(
            ['/^(\$\w+) = [^\n]*; +\/\/ ([^\n]+)$/m', '/^(\$\w+) = [^\n]*\{\n((?:(?!^\}).)*?)^\}\); +\/\/ ([^\n]+)$/ms'],
            ["$0\n\$results[] = ['$1', $2, $1];", "$0\n\$results[] = ['$1', $3, $1];"],
            \implode('', self::programs($page)),
        );
        [$code, $output] = $this->execute("{$page}.php", "{$program}\necho json_encode(\$results);", []);
        self::assertSame(0, $code, $output);
        $results = \json_decode($output, true);
        self::assertIsArray($results, $output);
        self::assertCount($values, $results);
        foreach ($results as [$name, $expected, $actual]) {
            self::assertSame($expected, $actual, $name);
        }
    }

    public function testTheTestsOfThePageAboutTestingPass(): void
    {
        [$code, $output] = $this->execute('CustomersTest.php', \implode('', self::programs('testing')), [self::phpunit(), '--no-configuration']);

        self::assertSame(0, $code, $output);
        self::assertMatchesRegularExpression('/OK \(3 tests, \d+ assertions\)/', $output);
    }

    public function testTheServerOfGettingStartedAnswers(): void
    {
        $port = Port::free();
        $file = "{$this->folder}/app.php";
        \file_put_contents($file, $this->source(\str_replace('8080', (string) $port, self::programs('getting-started')[0])));
        $server = Server::start([\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), $file], [], "{$this->folder}/log", $port);
        try {
            self::assertSame('{"n":12,"square":144}', \file_get_contents("http://127.0.0.1:{$port}/square/12"));
            self::assertSame("Hello\n", \file_get_contents("http://127.0.0.1:{$port}/"));
            // The quickest of some, as the machine may be busy.
            for ($quickest = \INF, $tries = 0; $quickest >= 0.95 && $tries < 40; $tries++) {
                $started = \microtime(true);
                self::assertSame("Worth the wait\n", \file_get_contents("http://127.0.0.1:{$port}/slow"));
                $quickest = \min($quickest, \microtime(true) - $started);
            }
            self::assertLessThan(0.95, $quickest, 'both waits at once');
        } finally {
            $server->stop();
        }
    }

    public function testTheTestOfGettingStartedPasses(): void
    {
        $shop = \var_export(self::root() . '/examples/shop/autoload.php', true);
        [$code, $output] = $this->execute('ShopTest.php', "require_once {$shop};\n" . self::programs('getting-started')[1], [self::phpunit(), '--no-configuration']);

        self::assertSame(0, $code, $output);
        self::assertMatchesRegularExpression('/OK \(1 test, \d+ assertions\)/', $output);
    }

    /**
     * @param list<string> $arguments before the file
     * @return array{int, string}
     */
    private function execute(string $name, string $program, array $arguments): array
    {
        \file_put_contents("{$this->folder}/{$name}", $this->source($program));
        $process = \proc_open(
            [\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), '-d', 'display_errors=1', ...$arguments, "{$this->folder}/{$name}"],
            [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]],
            $pipes,
        );
        self::assertIsResource($process);
        $output = (string) \stream_get_contents($pipes[1]);

        return [\proc_close($process), $output];
    }

    private function source(string $program): string
    {
        $autoload = \var_export(self::root() . '/autoload.php', true);

        return "<?php\n\ndeclare(strict_types=1);\n\nrequire_once {$autoload};\n\n{$program}";
    }

    /** @return non-empty-list<string> */
    private static function programs(string $page): array
    {
        \preg_match_all('/^```php\n(.*?)^```$/ms', (string) \file_get_contents(self::root() . "/docs/{$page}.md"), $programs);
        self::assertNotSame([], $programs[1]);

        return $programs[1];
    }

    private static function phpunit(): string
    {
        return \is_file(self::root() . '/vendor/bin/phpunit') ? self::root() . '/vendor/bin/phpunit' : \trim((string) \shell_exec('command -v phpunit'));
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 2);
    }
}
