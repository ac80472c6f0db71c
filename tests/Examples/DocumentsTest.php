<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PHPUnit\Framework\TestCase;

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
            self::program($page),
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
        $phpunit = \is_file(self::root() . '/vendor/bin/phpunit') ? self::root() . '/vendor/bin/phpunit' : \trim((string) \shell_exec('command -v phpunit'));
        [$code, $output] = $this->execute('CustomersTest.php', self::program('testing'), [$phpunit, '--no-configuration']);

        self::assertSame(0, $code, $output);
        self::assertMatchesRegularExpression('/OK \(3 tests, \d+ assertions\)/', $output);
    }

    /**
     * @param list<string> $arguments before the file
     * @return array{int, string}
     */
    private function execute(string $name, string $program, array $arguments): array
    {
        $autoload = \var_export(self::root() . '/autoload.php', true);
        \file_put_contents("{$this->folder}/{$name}", "<?php\n\ndeclare(strict_types=1);\n\nrequire_once {$autoload};\n\n{$program}");
        $process = \proc_open(
            [\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), '-d', 'display_errors=1', ...$arguments, "{$this->folder}/{$name}"],
            [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]],
            $pipes,
        );
        self::assertIsResource($process);
        $output = (string) \stream_get_contents($pipes[1]);

        return [\proc_close($process), $output];
    }

    private static function program(string $page): string
    {
        \preg_match_all('/^```php\n(.*?)^```$/ms', (string) \file_get_contents(self::root() . "/docs/{$page}.md"), $programs);
        self::assertNotSame([], $programs[1]);

        return \implode('', $programs[1]);
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 2);
    }
}
