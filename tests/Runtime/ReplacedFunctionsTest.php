<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Extension;
use Weft\Tests\Hooks\Support\Module;
use Weft\Tests\Http\Directory;

/** Functions of PHP that know tasks and realms do so whatever compiles their callers, and whichever extension is loaded beside Weft. */
final class ReplacedFunctionsTest extends TestCase
{
    /** Functions whose callers are compiled before there is a realm or a server. */
    private const CALLERS = <<<'PHP'
        function closeAll(): string { $closed = 0; while (ob_get_level() > 0 && $closed < 5) { ob_end_clean(); $closed++; } return $closed . count(ob_list_handlers()) . count(ob_get_status(true)); }
        function nameOfUser(): string { return var_export(filter_has_var(INPUT_GET, 'n'), true) . filter_input(INPUT_GET, 'n') . filter_input_array(INPUT_GET)['n']; }
        function moved(): string { try { header('Location: /'); return 'moved'; } catch (Error) { return 'refused'; } }
        function leave(int $x): void { if ($x > 0) { exit("bye $x"); } }
        PHP;

    private const PROGRAM = <<<'PHP'
        ob_start(static fn(string $text): string => $text);
        for ($i = 0; $i < 200; $i++) {
            // Hot enough for every compiler.
            ob_get_level(); header_remove('Location');
        }
        Weft\Native\separateOutput(ob_get_level());
        Weft\Native\Realm::refuseHeadersOutside();
        $seen = [];
        run(static function () use (&$seen): void {
            for ($i = 0; $i < 200; $i++) {
                $seen['buffers ' . async(closeAll(...))->await()] = true;
                $seen['header ' . async(moved(...))->await()] = true;
            }
            $seen['input ' . (new Weft\Runtime\Realm())->run(static function (Weft\Native\Realm $native): string {
                $native->begin([], ['n' => 'Ada'], [], [], [], [], '');
                return nameOfUser();
            })] = true;
            try {
                (new Weft\Runtime\Realm())->run(static fn() => leave(1));
            } catch (Weft\Runtime\ExitException) {
                $seen['left'] = true;
            }
        });
        Weft\Native\separateOutput(-1);
        ob_end_clean();
        echo implode("\n", array_keys($seen)), "\n";
        PHP;

    private const SEEN = "buffers 000\nheader refused\ninput trueAdaAda\nleft\n";

    private const EXIT = <<<'PHP'
        run(static function (): void {
            try {
                (new Weft\Runtime\Realm())->run(static function (): void { exit('bye'); });
            } catch (Weft\Runtime\ExitException) {
                echo ", the process goes on\n";
            }
        });
        PHP;

    /** A call that waits until the task is cancelled. */
    private const WAITS = '[$near, $far] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); function waits($near) { return fread($near, 1); }';

    private ?Directory $directory = null;
    private ?Module $module = null;

    protected function tearDown(): void
    {
        $this->directory?->remove();
        $this->module?->remove();
    }

    /** @dataProvider compilers */
    #[DataProvider('compilers')]
    public function testWhateverCompilesTheCaller(string ...$options): void
    {
        $options === [] || self::needOpcache();
        $program = Subprocess::run(self::CALLERS . self::PROGRAM, extensions: ['opcache'], options: array_values($options));

        self::assertSame(self::SEEN, $program->output, $program->errors);
        self::assertSame('', $program->errors);
    }

    /** @return iterable<string, list<string>> */
    public static function compilers(): iterable
    {
        yield 'PHP' => [];
        yield 'opcache' => ['opcache.enable_cli=1', 'opcache.file_update_protection=0'];
        yield 'the JIT, by traces' => ['opcache.enable_cli=1', 'opcache.file_update_protection=0', 'opcache.jit_buffer_size=32M', 'opcache.jit=tracing'];
        yield 'the JIT, whole functions' => ['opcache.enable_cli=1', 'opcache.file_update_protection=0', 'opcache.jit_buffer_size=32M', 'opcache.jit=function'];
    }

    public function testCallersThatArePreloaded(): void
    {
        self::needOpcache();
        $this->directory = new Directory();
        file_put_contents("{$this->directory->path}/preload.php", '<?php ' . self::CALLERS);

        $program = Subprocess::run(self::PROGRAM, extensions: ['opcache'], options: [
            'opcache.enable_cli=1', 'opcache.jit_buffer_size=32M', 'opcache.jit=function', "opcache.preload={$this->directory->path}/preload.php",
            'opcache.preload_user=' . posix_getpwuid(posix_geteuid())['name'],
        ]);

        self::assertSame(self::SEEN, $program->output, $program->errors);
        self::assertSame('', $program->errors);
    }

    public function testACacheOfFilesThatProcessesWithoutWeftHaveFilled(): void
    {
        self::needOpcache();
        $this->directory = new Directory();
        $cache = "{$this->directory->path}/cache";
        mkdir($cache);
        file_put_contents("{$this->directory->path}/callers.php", '<?php ' . self::CALLERS);
        $options = ['opcache.enable_cli=1', 'opcache.file_update_protection=0', "opcache.file_cache=$cache", 'opcache.file_cache_only=1'];
        $php = array_map(escapeshellarg(...), [PHP_BINARY, '-n', '-d', 'zend_extension=opcache', ...array_merge(...array_map(static fn(string $option): array => ['-d', $option], $options))]);
        exec(implode(' ', $php) . ' ' . escapeshellarg("{$this->directory->path}/callers.php") . ' 2>&1', $lines);
        $filled = glob("$cache/*") ?: [];

        $program = Subprocess::run("require '{$this->directory->path}/callers.php';" . self::PROGRAM, extensions: ['opcache'], options: $options);

        self::assertCount(1, $filled, implode("\n", $lines));
        self::assertSame(self::SEEN, $program->output, $program->errors);
        exec('rm -r ' . escapeshellarg($cache));
    }

    public function testWeftThatAScriptLoads(): void
    {
        $library = Extension::library();
        $code = 'dl(' . var_export(basename($library), true) . '); require ' . var_export(\dirname(__DIR__, 2) . '/autoload.php', true) . '; eval(' . var_export('use function Weft\{async, run};' . self::CALLERS . self::PROGRAM, true) . ');';
        if (!str_contains($library, '/')) {
            self::markTestSkipped('The file of the extension is unknown');
        }
        exec(implode(' ', array_map(escapeshellarg(...), [PHP_BINARY, '-n', '-d', 'extension_dir=' . \dirname($library), '-r', $code])) . ' 2>&1', $lines);

        self::assertSame(self::SEEN, implode("\n", $lines) . "\n");
    }

    public function testAnExtensionThatHandlesExitAsWell(): void
    {
        $this->module = Module::compile('late-exit');

        $program = Subprocess::run(self::EXIT . 'exit("outside");', options: ["extension={$this->module->file}"]);

        self::assertSame("bye, the process goes on\nexit\noutside", $program->output, $program->errors);
        self::assertSame(0, $program->exitCode);
    }

    /** @dataProvider extensions */
    #[DataProvider('extensions')]
    public function testAnExtensionBesideWeft(string $name, string ...$options): void
    {
        $file = ini_get('extension_dir') . "/$name.so";
        is_file($file) || self::markTestSkipped("$name is not installed");
        $load = ($name === 'xdebug' ? 'zend_' : '') . "extension=$file";

        $this->directory = new Directory();

        $program = Subprocess::run(self::EXIT . "echo extension_loaded('$name') ? 'with' : 'without', ' it';", extensions: ['mysqlnd', 'pdo', 'sockets', 'curl'], options: [$load, "xdebug.output_dir={$this->directory->path}", ...array_values($options)]);

        self::assertSame("bye, the process goes on\nwith it", $program->output, $program->errors);
    }

    /** @return iterable<string, list<string>> */
    public static function extensions(): iterable
    {
        yield 'uopz' => ['uopz'];
        yield 'Swoole' => ['swoole'];
        yield 'pcov' => ['pcov', 'pcov.enabled=1'];
        yield 'the profiler of Xdebug' => ['xdebug', 'xdebug.mode=profile', 'xdebug.start_with_request=yes', 'xdebug.log_level=0'];
    }

    /** @dataProvider observed */
    #[DataProvider('observed')]
    public function testObserversSeeTheEndOfEachCall(string $code): void
    {
        $this->module = Module::compile('observer');

        $program = Subprocess::run($code, options: ["extension={$this->module->file}", 'display_errors=0', 'log_errors=0']);

        self::assertNull($program->signal);
        self::assertSame('all ended', $program->errors);
    }

    /** @return iterable<string, array{string}> */
    public static function observed(): iterable
    {
        yield 'tasks, a realm and exit()' => [self::CALLERS . self::PROGRAM];
        yield 'a task that is cancelled in a call' => [self::WAITS . 'run(static function () use ($near): void { $task = async(static fn() => waits($near)); delay(0.001); $task->cancel(); try { $task->await(); } catch (Weft\Runtime\CancelledException) { } });'];
        yield 'a fiber that PHP destroys' => ['function f(): void { Fiber::suspend(); } run(static function (): void { $fiber = new Fiber(static function (): void { ob_get_level(); f(); }); $fiber->start(); ob_get_level(); });'];
    }

    /** PHP ends none of the calls of fibers that are suspended at a fatal error, with tasks or without. */
    public function testObserversAndAFatalErrorWhileACallOfAnotherTaskWaits(): void
    {
        $this->module = Module::compile('observer');

        $program = Subprocess::run(self::WAITS . 'run(static function () use ($near): void { async(static fn() => waits($near)); delay(0.001); async(static function (): void { trigger_error("end", E_USER_ERROR); })->await(); });', options: ["extension={$this->module->file}"]);

        self::assertSame([null, 255], [$program->signal, $program->exitCode], $program->errors);
        self::assertStringContainsString('Fatal error: end', $program->errors);
    }

    private static function needOpcache(): void
    {
        if (!is_file(ini_get('extension_dir') . '/opcache.so') && !\extension_loaded('Zend OPcache')) {
            self::markTestSkipped('OPcache is not installed');
        }
    }
}
