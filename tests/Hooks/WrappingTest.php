<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Execution;
use Weft\Tests\Http\Directory;
use Weft\Tests\Runtime\Subprocess;

/** Calls of libraries are wrapped whatever compiles, loads or inherits the functions. */
final class WrappingTest extends TestCase
{
    private const PROGRAM = <<<'PHP'
        final class Report extends Database {}
        $pdo = new Report('sqlite::memory:');
        $isPaused = $isTried = false;
        @$pdo->sqliteCreateFunction('pause', function () use (&$isPaused, &$isTried): int { $isPaused = true; while (!$isTried) { delay(0.001); } return 1; });
        run(function () use ($pdo, &$isPaused, &$isTried) {
            for ($i = 0; $i < 500; $i++) {
                // Hot enough for every compiler.
                $pdo->query('SELECT 1')->fetch();
            }
            $first = async(fn() => (int) $pdo->query('SELECT pause()')->fetchColumn());
            while (!$isPaused) {
                delay(0.001);
            }
            try {
                $pdo->query('SELECT 2');
                echo "not refused\n";
            } catch (Weft\Runtime\HandleInUseError $error) {
                echo $error->call, "\n";
            }
            $isTried = true;
            echo $first->await(), "\n";
        });
        PHP;

    private ?string $preloaded = null;

    protected function tearDown(): void
    {
        $this->preloaded === null || unlink($this->preloaded);
    }

    /** @dataProvider settings */
    #[DataProvider('settings')]
    public function testOpcacheAndItsCompiler(string ...$options): void
    {
        $program = self::program('class Database extends PDO {}' . self::PROGRAM, ...$options);

        self::assertSame("PDO::query()\n1\n", $program->output, $program->errors);
        self::assertSame('', $program->errors);
    }

    /** @return iterable<string, list<string>> */
    public static function settings(): iterable
    {
        yield 'without opcache' => [];
        yield 'opcache' => ['opcache.enable_cli=1'];
        yield 'tracing' => ['opcache.enable_cli=1', 'opcache.jit_buffer_size=32M', 'opcache.jit=tracing'];
        yield 'whole functions' => ['opcache.enable_cli=1', 'opcache.jit_buffer_size=32M', 'opcache.jit=function'];
    }

    /**
     * @dataProvider modesOfXdebug
     *
     * @param list<string> $files what it writes
     */
    #[DataProvider('modesOfXdebug')]
    public function testXdebug(string $mode, array $files = []): void
    {
        is_file(ini_get('extension_dir') . '/xdebug.so') || self::markTestSkipped('xdebug is not installed');
        $directory = new Directory();
        try {
            $program = self::program('class Database extends PDO {}' . self::PROGRAM, 'zend_extension=xdebug', "xdebug.mode=$mode", 'xdebug.start_with_request=' . ($files === [] ? 'no' : 'yes'), 'xdebug.use_compression=0', "xdebug.output_dir=$directory->path", 'xdebug.log_level=0');

            self::assertSame("PDO::query()\n1\n", $program->output, $program->errors);
            self::assertSame('', $program->errors);
            self::assertSame($files, array_map(static fn(string $name): string => explode('.', $name)[0], $directory->names()));
        } finally {
            $directory->remove();
        }
    }

    /** @return iterable<string, array{0: string, 1?: list<string>}> */
    public static function modesOfXdebug(): iterable
    {
        yield 'better errors, coverage' => ['develop,coverage'];
        yield 'debugging without a debugger' => ['debug'];
        yield 'profile' => ['profile', ['cachegrind']];
        yield 'trace' => ['trace', ['trace']];
    }

    public function testAPreloadedClass(): void
    {
        $this->preloaded = (string) tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($this->preloaded, '<?php class Database extends PDO {}');

        $program = self::program(self::PROGRAM, 'opcache.enable_cli=1', "opcache.preload=$this->preloaded", 'opcache.preload_user=' . posix_getpwuid(posix_geteuid())['name']);

        self::assertSame("PDO::query()\n1\n", $program->output, $program->errors);
    }

    public function testAModuleThatIsLoadedByTheProgram(): void
    {
        if (!is_file(ini_get('extension_dir') . '/pdo_sqlite.so')) {
            self::markTestSkipped('pdo_sqlite is compiled into PHP');
        }
        $program = Subprocess::run('dl("pdo"); dl("pdo_sqlite"); eval("class Database extends PDO {}");' . self::PROGRAM);

        self::assertSame("PDO::query()\n1\n", $program->output, $program->errors);
    }

    public function testAModuleThatIsLoadedAfterThisOne(): void
    {
        $program = Subprocess::run('class Database extends PDO {}' . self::PROGRAM, options: ['extension=pdo', 'extension=pdo_sqlite']);

        self::assertSame("PDO::query()\n1\n", $program->output, $program->errors);
    }

    public function testQueueingIsAnOptionOfTheEventLoopAndOfTheEnvironment(): void
    {
        $code = <<<'PHP'
            use Weft\Native;
            $is = fn() => print(var_export(Native\queueForHandles(false), true) . "\n");
            run($is);
            run($is, queueForHandles: true);
            run(fn() => [Native\queueForHandles(false), Native\queueForHandles(true)]);
            $is();
            putenv('WEFT_QUEUE_FOR_HANDLES=1');
            run($is);
            run($is, queueForHandles: false);
            PHP;

        self::assertSame("false\ntrue\nfalse\ntrue\nfalse\n", Subprocess::run($code)->output);
    }

    private static function program(string $code, string ...$options): Execution
    {
        return Subprocess::run($code, extensions: ['pdo', 'pdo_sqlite', 'opcache'], options: array_values($options));
    }
}
