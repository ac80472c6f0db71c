<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Port;
use Weft\Bench\Server;
use Weft\Site\ForeignClasses;
use Weft\Site\PublicClasses;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';
require_once __DIR__ . '/../../site/autoload.php';

/**
 * Runs the programs of pages in docs/ and compares what they say they give: `$value = …; // expected`. Blocks that are not programs are checked
 * against the library, see {@see DocumentedCode}.
 */
final class DocumentsTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-docs-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public static function pages(): iterable
    {
        yield 'sagas' => ['reference/sagas', 5];
        yield 'locks' => ['reference/locks', 2];
        yield 'event-sourcing' => ['reference/event-sourcing', 5];
    }

    /** @dataProvider pages */
    #[DataProvider('pages')]
    public function testTheProgramOfThePageGivesWhatItSays(string $page, int $values): void
    {
        // Also where the call ends some lines later: `}); // expected`.
        $program = \preg_replace(
            ['/^(\$\w+) = [^\n]*; +\/\/ ([^\n]+)$/m', '/^(\$\w+) = [^\n]*\{\n((?:(?!^\}).)*?)^\}\); +\/\/ ([^\n]+)$/ms'],
            ["$0\n\$results[] = ['$1', $2, $1];", "$0\n\$results[] = ['$1', $3, $1];"],
            \implode('', self::programs($page)),
        );
        [$code, $output] = $this->execute(\basename($page) . '.php', "{$program}\necho json_encode(\$results);", []);
        self::assertSame(0, $code, $output);
        $results = \json_decode($output, true);
        self::assertIsArray($results, $output);
        self::assertCount($values, $results);
        foreach ($results as [$name, $expected, $actual]) {
            self::assertSame($expected, $actual, $name);
        }
    }

    public function testEveryPhpBlockOfEveryPageParsesAndNamesWhatExists(): void
    {
        ForeignClasses::register(standIns: false);
        $names = static fn(\ReflectionClass $class): string => $class->getName();
        $code = new DocumentedCode(\array_map($names, PublicClasses::of(self::root() . '/src')->all));
        $blocks = 0;
        $problems = [];
        foreach (self::documents() as $page) {
            $found = DocumentedCode::blocks((string) \file_get_contents(self::root() . "/{$page}"));
            $blocks += \count($found);
            $problems = [...$problems, ...$code->problems($page, $found)];
        }

        self::assertSame([], $problems);
        self::assertGreaterThan(70, $blocks);
    }

    public function testTheCheckOfPhpBlocksAcceptsABridgeWhoseLibraryIsNotInstalled(): void
    {
        $load = static fn(string $class) => $class === 'Weft\Bridge\Absent' ? throw new \Error('Class "Absent\Library" not found') : null;
        \spl_autoload_register($load, prepend: true);
        try {
            $problems = (new DocumentedCode([]))->problems('page.md', DocumentedCode::blocks("```php\nuse Weft\Bridge\Absent;\nnew Absent(1);\nWeft\Bridge\Absent::make();\n```\n"));
        } finally {
            \spl_autoload_unregister($load);
        }

        self::assertSame([], $problems);
    }

    public function testTheCheckOfPhpBlocksFindsWhatDoesNotExist(): void
    {
        $page = "```php\n\$app = new Weft\\App(graze: 1.0);\n\$app->htpt('x');\nRetry::foo();\n```\n\n```php\n#[Retry(imediate: 2)]\npublic function f(Context \$c) { \$c->publsh(new A); }\n```\n"
            . "```php\nWeft\\runn(fn() => 1);\n\$db->execute();\n```\n```php\nDeliveryGuarantee::Nope; new Customers(…); new Timeout(…);\n```\n```php\nif (\n```\n";
        $code = new DocumentedCode([\Weft\App::class, \Weft\Bus\Context::class, \Weft\Bus\DeliveryGuarantee::class, \Weft\Bus\Retry::class, \Weft\Bus\Timeout::class]);

        self::assertSame([
            'page.md:18: Syntax error, unexpected EOF on line 2',
            'page.md:1: new Weft\App(): has no parameter $graze',
            'page.md:1: there is no method Weft\App::htpt()',
            'page.md:1: there is no method Retry::foo()',
            'page.md:7: new Retry(): has no parameter $imediate',
            'page.md:7: there is no method Weft\Bus\Context::publsh()',
            'page.md:11: there is no function Weft\runn()',
            'page.md:11: Weft\Sql\Database::execute(): needs $sql',
            'page.md:15: there is no DeliveryGuarantee::Nope',
        ], $code->problems('page.md', DocumentedCode::blocks($page)));
    }

    /** Those of tutorials, guides and migration pages are run as well, see tests/Documentation. */
    public function testEveryCommandOfEveryPageNamesWhatExists(): void
    {
        $weft = \Weft\Site\Reference::all();
        \preg_match_all('/^([a-z][a-z0-9-]*):/m', (string) \file_get_contents(self::root() . '/Makefile'), $targets);
        $targets = [...$targets[1], 'rinha', 'bench-rinha'];
        $commands = 0;
        foreach ([...self::documents(), 'CONTRIBUTING.md'] as $page) {
            \preg_match_all('/^( *)```sh\n(.*?)^\1```$/ms', (string) \file_get_contents(self::root() . "/{$page}"), $blocks);
            foreach ($blocks[2] as $block) {
                \file_put_contents("{$this->directory}/block.sh", $block);
                \exec('bash -n ' . \escapeshellarg("{$this->directory}/block.sh") . ' 2>&1', $output, $code);
                self::assertSame(0, $code, "{$page}: " . \implode("\n", $output));
                foreach (\explode("\n", (string) \preg_replace('/(^|\s)#.*$/m', '', $block)) as $line) {
                    // Otherwise curl shows a progress meter, which the page does not have.
                    \preg_match('/\bcurl (?!-\w*s).*(\||>| -o )/', $line) === 1 && self::fail("{$page}: curl needs -s where its output is not shown: {$line}");
                    \preg_match('/(?:^| )make ([a-z][a-z0-9-]*)/', $line, $make) === 1 && self::assertContains($make[1], $targets, "{$page}: {$line}");
                    \preg_match('~(?:^| )((?:scripts|bench)/[\w/-]+)(?= |$)~', $line, $script) === 1 && self::assertFileExists(self::root() . "/{$script[1]}", "{$page}: {$line}");
                    if (!\str_contains($line, 'ln -s') && \preg_match('~(?:^|[ /])weft ((?:[a-z]+)(?::[a-z]+)?)(.*)~', $line, $call) === 1) {
                        self::assertArrayHasKey($call[1], $weft, "{$page}: {$line}");
                        \preg_match_all('/ --([a-z-]+)/', \explode(' -- ', $call[2])[0], $options);
                        foreach ($options[1] as $option) {
                            self::assertTrue($weft[$call[1]]->getDefinition()->hasOption($option) || \str_contains($weft[$call[1]]->getHelp(), "--{$option}"), "{$page}: {$line}");
                        }
                        $commands++;
                    }
                }
            }
        }
        self::assertGreaterThan(50, $commands);
    }

    public function testEveryBlockOfJsonParses(): void
    {
        $blocks = 0;
        foreach (self::documents() as $page) {
            \preg_match_all('/^( *)```json[^\n]*\n(.*?)^\1```$/ms', (string) \file_get_contents(self::root() . "/{$page}"), $found);
            foreach ($found[2] as $block) {
                self::assertNotNull(\json_decode($block, true), "{$page}: " . \json_last_error_msg() . "\n{$block}");
                $blocks++;
            }
        }
        self::assertGreaterThan(2, $blocks);
    }

    public function testTheTestsOfThePageAboutTestingPass(): void
    {
        [$code, $output] = $this->execute('CustomersTest.php', \implode('', self::programs('reference/testing')), [self::phpunit(), '--no-configuration']);

        self::assertSame(0, $code, $output);
        self::assertMatchesRegularExpression('/OK \(3 tests, \d+ assertions\)/', $output);
    }

    public function testTheServerOfGettingStartedAnswers(): void
    {
        $port = Port::free();
        $file = "{$this->directory}/app.php";
        \file_put_contents($file, $this->source(\str_replace('8080', (string) $port, self::programs('tutorials/getting-started')[0])));
        $server = Server::start([\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), $file], [], "{$this->directory}/log", $port);
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
        [$code, $output] = $this->execute('ShopTest.php', "require_once {$shop};\n" . self::programs('tutorials/getting-started')[6], [self::phpunit(), '--no-configuration']);

        self::assertSame(0, $code, $output);
        self::assertMatchesRegularExpression('/OK \(1 test, \d+ assertions\)/', $output);
    }

    public function testTheFourProgramsOfGettingStartedHaveFewerThanTwentyLines(): void
    {
        foreach (\array_slice(self::programs('tutorials/getting-started'), 1, 4) as $program) {
            $lines = \array_filter(\explode("\n", $program), static fn(string $line): bool => \trim($line) !== '');
            self::assertLessThan(20, \count($lines), $program);
            self::assertStringContainsString('new App()', $program);
        }
    }

    public function testTheApiOfGettingStartedStoresAndRefuses(): void
    {
        $this->serve(1, function (string $url): void {
            self::assertSame([200, '{"id":1,"text":"milk"}'], self::post("$url/notes", '{"text": "milk"}'));
            [$status, $problem] = self::post("$url/notes", '{"text": 5}');
            self::assertSame([422, true], [$status, \str_contains($problem, '/text')], $problem);
            self::assertSame('[{"id":1,"text":"milk"}]', \file_get_contents("$url/notes"));
            self::assertSame('{"id":1,"text":"milk"}', \file_get_contents("$url/notes/1"));
        });
    }

    public function testTheWorkerOfGettingStartedHandlesEachCommandOnce(): void
    {
        $database = "sqlite:{$this->directory}/greetings.db";
        $file = "{$this->directory}/worker.php";
        \file_put_contents($file, $this->source(\str_replace('sqlite:greetings.db', $database, self::programs('tutorials/getting-started')[2])));
        // A command that took effect twice would be seen after the second start, which finds the first one's queue and inbox.
        foreach ([['Ada'], ['Ada', 'Ada']] as $expected) {
            $worker = \proc_open([\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), $file], [['file', '/dev/null', 'r'], ['file', "{$this->directory}/log", 'w'], ['redirect', 1]], $pipes);
            self::assertIsResource($worker);
            try {
                Timing::until(static fn(): bool => !\proc_get_status($worker)['running'] || \count(self::greetings($database)) >= \count($expected), 'the greetings');
            } finally {
                \proc_terminate($worker);
                $code = \proc_close($worker);
            }
            self::assertSame(0, $code, (string) \file_get_contents("{$this->directory}/log"));
            self::assertSame($expected, self::greetings($database));
        }
    }

    public function testTheApiAndWorkerOfGettingStartedAnswersAtOnceAndHandlesLater(): void
    {
        $this->serve(3, function (string $url, string $log): void {
            self::assertSame(202, self::post("$url/bells", '{"bell": "the large one"}')[0]);
            $deadline = \microtime(true) + 60.0;
            while (!\str_contains((string) \file_get_contents($log), "the large one rings\n") && \microtime(true) < $deadline) {
                \usleep(10_000);
            }
            self::assertStringContainsString("the large one rings\n", (string) \file_get_contents($log));
        });
    }

    public function testTheGrpcServiceOfGettingStartedIsCalled(): void
    {
        \preg_match('/^```proto\n(.*?)^```$/ms', (string) \file_get_contents(self::root() . '/docs/tutorials/getting-started.md'), $proto);
        \file_put_contents("{$this->directory}/greeter.proto", $proto[1]);
        \exec('cd ' . \escapeshellarg($this->directory) . ' && ' . \escapeshellarg(\PHP_BINARY) . ' -d extension=' . \escapeshellarg((string) \getenv('WEFT_EXTENSION')) . ' ' . \escapeshellarg(self::root() . '/bin/weft') . ' proto:generate greeter.proto --out=. 2>&1', $output, $code);
        self::assertSame(0, $code, \implode("\n", $output));
        $this->serve(4, function (string $url): void {
            $client = \str_replace(['9090', '10.0'], [(string) \parse_url($url, \PHP_URL_PORT), '60.0'], self::programs('tutorials/getting-started')[5]);
            self::assertSame([0, "Hello Ada\n"], $this->execute('client.php', $client, []));
        });
    }

    /**
     * Runs a program of the page with a port and files of its own.
     *
     * @param \Closure(string, string): void $test gets the URL and the log file
     */
    private function serve(int $program, \Closure $test): void
    {
        $port = Port::free();
        $file = "{$this->directory}/app.php";
        $source = \str_replace(['8080', '9090', 'sqlite:'], [(string) $port, (string) $port, "sqlite:{$this->directory}/"], self::programs('tutorials/getting-started')[$program]);
        \file_put_contents($file, $this->source($source));
        $server = Server::start([\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), $file], [], "{$this->directory}/log", $port);
        try {
            $test("http://127.0.0.1:{$port}", "{$this->directory}/log");
        } finally {
            $server->stop();
        }
    }

    /** @return list<string> none before the table exists */
    private static function greetings(string $database): array
    {
        try {
            return (new \PDO($database))->query('SELECT name FROM greetings')->fetchAll(\PDO::FETCH_COLUMN);
        } catch (\PDOException) {
            return [];
        }
    }

    /** @return array{int, string} status and body */
    private static function post(string $url, string $body): array
    {
        $answer = HttpAnswer::of($url, ['method' => 'POST', 'content' => $body, 'header' => 'content-type: application/json', 'timeout' => 60]);

        return [$answer->status, (string) $answer->body];
    }

    /**
     * @param list<string> $arguments before the file
     * @return array{int, string}
     */
    private function execute(string $name, string $program, array $arguments): array
    {
        \file_put_contents("{$this->directory}/{$name}", $this->source($program));
        $process = \proc_open(
            [\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), '-d', 'display_errors=1', ...$arguments, "{$this->directory}/{$name}"],
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

        // The first lines of a program load the library, as source() does.
        return \preg_replace('/^<\?php\n\nrequire [^\n]+\n\n/', '', $programs[1]);
    }

    /** @return list<string> the pages that users read */
    private static function documents(): array
    {
        $pages = ['README.md'];
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(self::root() . '/docs', \FilesystemIterator::SKIP_DOTS)) as $file) {
            $file->getExtension() !== 'md' || $pages[] = \substr($file->getPathname(), \strlen(self::root()) + 1);
        }
        \sort($pages);

        return $pages;
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
