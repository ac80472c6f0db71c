<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Native;
use Weft\Tests\Execution;
use Weft\Tests\Hooks\Support\Module;
use Weft\Tests\Runtime\Subprocess;

/** Where libraries suspend tasks, and where they block. */
final class SwitchTest extends TestCase
{
    private const TWO_SLEEPERS = <<<'PHP'
        run(function () {
            foreach ([1, 2] as $number) {
                async(function () use ($number) { echo "$number begins "; usleep(1000); echo "$number ends "; });
            }
        });
        PHP;
    private const BLOCKING = '1 begins 1 ends 2 begins 2 ends ';

    public function testTheEnvironmentSwitchesThemOff(): void
    {
        self::assertSame(self::BLOCKING, self::with('WEFT_HOOKS=off', self::TWO_SLEEPERS)->output);
        self::assertSame(self::BLOCKING, self::with('WEFT_HOOKS=sockets,pipes', self::TWO_SLEEPERS)->output);
        self::assertStringStartsWith('1 begins 2 begins ', self::with('WEFT_HOOKS=sleep', self::TWO_SLEEPERS)->output);
        self::assertStringStartsWith('1 begins 2 begins ', self::with('WEFT_HOOKS', self::TWO_SLEEPERS)->output);
    }

    public function testWhereTheCheckFailsCallsBlockAndAWarningSaysSoOnce(): void
    {
        $program = self::with('WEFT_HOOKS_EXCLUDE=php', self::TWO_SLEEPERS . self::TWO_SLEEPERS);

        self::assertSame(self::BLOCKING . self::BLOCKING, $program->output, $program->errors);
        self::assertSame(1, \substr_count($program->errors, 'Libraries block the process instead of suspending the task: '), $program->errors);
    }

    public function testTheCheckSucceedsWithDescriptorsThatSelectDoesNotKnow(): void
    {
        $program = Subprocess::run(<<<'PHP'
            posix_setrlimit(POSIX_RLIMIT_NOFILE, 4096, 4096);
            for ($pairs = []; count($pairs) < 600;) {
                $pairs[] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            }
            run(function () use ($pairs) {
                $tasks = array_map(fn(array $pair) => async(fn() => fread($pair[0], 10)), $pairs);
                foreach ($pairs as $number => [, $far]) {
                    fwrite($far, (string) $number);
                }
                $read = array_map(fn($task) => (int) $task->await(), $tasks);
                echo $read === range(0, 599) ? "each has its own\n" : "mixed up\n";
            });
            PHP);

        self::assertSame("each has its own\n", $program->output . $program->errors);
    }

    public function testALibraryOfTheUsersChoiceBlocks(): void
    {
        $program = self::with('WEFT_HOOKS_EXCLUDE=sockets.so,libpq', 'run(fn() => 1); echo implode(" ", array_keys(Weft\Native\hookedFunctions()));', ['sockets']);

        self::assertStringNotContainsString('sockets.so', $program->output);
        self::assertStringContainsString('php', $program->output);
    }

    public function testAForkedChildThatExitsLeavesTheConnectionsOfItsParentOpen(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                $server = stream_socket_server('tcp://127.0.0.1:0');
                $client = stream_socket_client('tcp://' . stream_socket_get_name($server, false));
                $peer = stream_socket_accept($server);
                $line = async(fn() => fgets($client));
                delay(0.001);
                $child = pcntl_fork();
                if ($child === 0) { exit(0); }
                pcntl_waitpid($child, $status);
                fwrite($peer, "for the parent\n");
                echo $line->await();
            });
            PHP);

        self::assertSame("for the parent\n", $program->output, $program->errors);
    }

    public function testAForkedChildMakesTheRealCalls(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                async(function () {
                    for ($i = 0; $i < 100; $i++) { usleep(1000); }
                });
                usleep(2000);
                [$near, $far] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
                $child = pcntl_fork();
                if ($child === 0) {
                    usleep(1000);
                    $read = [$near]; $none = [];
                    echo stream_select($read, $none, $none, 0, 1000), ' in the child ';
                    fwrite($far, 'x');
                    echo fread($near, 1), ' read ';
                    ob_end_flush();
                    posix_kill(getmypid(), SIGKILL);
                }
                pcntl_waitpid($child, $status);
                usleep(1000);
                echo 'parent goes on';
            });
            PHP);

        self::assertSame('0 in the child x read parent goes on', \str_replace("\n", '', $program->output), $program->errors);
        self::assertSame(0, $program->exitCode, $program->errors);
    }

    /** Nothing would keep two tasks apart on one of its connections. */
    public function testAnExtensionWhoseHandlesAreUnknownBlocks(): void
    {
        $module = Module::compile('unlisted');
        try {
            $program = Subprocess::run(
                \str_replace('usleep(1000)', 'unlisted_wait()', self::TWO_SLEEPERS) . 'echo implode(" ", Weft\Native\blockingExtensions());',
                options: ["extension=$module->file"],
            );
        } finally {
            $module->remove();
        }

        self::assertSame(self::BLOCKING . 'unlisted', $program->output, $program->errors);
    }

    public function testOutputBuffersWorkWhereOtherExtensionsHaveTakenAllPlacesInFibers(): void
    {
        $module = Module::compile('all-slots');
        try {
            $program = Subprocess::run(<<<'PHP'
                ob_start(static fn(string $text): string => $text);
                Weft\Native\separateOutput(ob_get_level());
                run(function (): void {
                    $level = static function (): int { $level = ob_get_level(); delay(0.001); @ob_end_clean(); return $level; };
                    fwrite(STDERR, implode(' ', all([$level, $level])));
                }, hooks: []);
                fwrite(STDERR, ' ' . ob_get_level());
                PHP, under: ['sh', '-c', "php=\$1; shift; exec \"\$php\" -d extension=$module->file \"\$@\"", 'sh']);
        } finally {
            $module->remove();
        }

        self::assertSame(['0 0 1', 0], [$program->errors, $program->exitCode]);
    }

    public function testTheExtensionsOfPhpHaveRulesOrNeedNone(): void
    {
        $clients = ['imap', 'odbc', 'pdo_dblib', 'PDO_Firebird', 'PDO_ODBC', 'snmp'];
        $isOfPhp = static fn(string $name): bool => (new \ReflectionExtension($name))->getVersion() === \PHP_VERSION;

        self::assertSame([], \array_values(\array_diff(\array_filter(Native\blockingExtensions(), $isOfPhp), $clients)));
    }

    public function testALibraryThatIsLoadedLaterIsReplacedToo(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                $libc = FFI::cdef('void *dlopen(const char *, int);');
                $before = array_keys(Weft\Native\hookedFunctions());
                @FFI::cdef('const char *curl_version(void);', 'libcurl.so.4');
                echo implode(' ', array_diff(array_keys(Weft\Native\hookedFunctions()), $before));
            });
            PHP, extensions: ['ffi']);

        if (!\str_contains($program->output, 'libcurl')) {
            \is_file('/usr/lib/x86_64-linux-gnu/libcurl.so.4') || self::markTestSkipped('libcurl is not installed');
        }
        self::assertStringContainsString('libcurl.so', $program->output, $program->errors);
    }

    /** PHP has room for six extensions; opcache, debuggers and profilers need it too. */
    public function testWeftTakesOneOfThePlacesThatPhpHasInEachFiberAndFunction(): void
    {
        $next = 'echo FFI::cdef("int zend_get_resource_handle(const char *);")->zend_get_resource_handle("the next one");';
        $without = \exec(\escapeshellarg(\PHP_BINARY) . ' -n -d extension=ffi -r ' . \escapeshellarg($next));
        $with = Subprocess::run($next, extensions: ['ffi']);

        self::assertSame((int) $without + 1, (int) $with->output, $with->errors);
    }

    public function testAnIncludeThatWaitsBlocksAndOthersCompileMeanwhileUnharmed(): void
    {
        $program = Subprocess::run(<<<'PHP'
            class Slow {
                public $context; private $data = '<?php return 7;';
                function stream_open() { return true; } function stream_stat() { return []; }
                function stream_set_option() { return false; }
                function stream_read() { usleep(2000); $data = $this->data; $this->data = ''; return $data; }
                function stream_eof() { return $this->data === ''; }
            }
            stream_wrapper_register('slow', Slow::class);
            run(function () {
                $file = tempnam(sys_get_temp_dir(), 'weft');
                file_put_contents($file, '<?php return 6;');
                $tasks = [async(function () { echo 'a'; return include 'slow://x'; }), async(function () use ($file) { echo 'b'; return include $file; }), async(fn() => include 'slow://y')];
                echo implode(' ', array_map(fn($task) => $task->await(), $tasks));
                unlink($file);
            });
            PHP);

        self::assertSame('ab7 6 7', $program->output, $program->errors);
    }

    public function testAnAutoloaderThatWaitsBlocksSoThatOtherTasksFindTheClass(): void
    {
        $program = Subprocess::run(<<<'PHP'
            spl_autoload_register(function (string $class) { usleep(2000); eval("class $class {}"); });
            run(function () {
                $tasks = [async(fn() => class_exists('Late')), async(fn() => class_exists('Late'))];
                echo json_encode(array_map(fn($task) => $task->await(), $tasks));
            });
            PHP);

        self::assertSame('[true,true]', $program->output, $program->errors);
    }

    /** @return iterable<string, array{string}> a wait of PHP's and one of Weft's own, in code */
    public static function waits(): iterable
    {
        yield 'a call of PHP' => ['usleep(1000)'];
        yield 'a call of Weft' => ['delay(0.001)'];
    }

    /** @dataProvider waits */
    #[DataProvider('waits')]
    public function testASortWhoseComparisonWaitsKeepsItsOwnOrder(string $wait): void
    {
        $program = Subprocess::run("function pause(): void { $wait; }\n" . <<<'PHP'
            run(function () {
                $sort = function (int $sign) { $list = [3, 1, 2]; usort($list, function ($a, $b) use ($sign) { pause(); return $sign * ($a <=> $b); }); return $list; };
                $tasks = [async(fn() => $sort(1)), async(fn() => $sort(-1))];
                echo json_encode(array_map(fn($task) => $task->await(), $tasks));
            });
            PHP);

        self::assertSame('[[1,2,3],[3,2,1]]', $program->output, $program->errors);
    }

    /** @dataProvider waits */
    #[DataProvider('waits')]
    public function testAWarningOfAnotherTaskIsNoExceptionOfAConstructor(string $wait): void
    {
        $program = Subprocess::run("function pause(): void { $wait; }\n" . <<<'PHP'
            class Wrapper
            {
                public $context;
                function stream_open($path, $mode, $options, &$opened) { while (!$GLOBALS['warned']) { pause(); } return true; }
                function stream_read($length) { return ''; }
                function stream_eof() { return true; }
                function stream_stat() { return []; }
                function url_stat($path, $flags) { return []; }
            }
            stream_wrapper_register('slow', Wrapper::class);
            $warned = false;
            run(function () {
                $file = async(fn() => new SplFileObject('slow://file'));
                $other = async(function () { $list = []; $missing = @$list['missing']; $GLOBALS['warned'] = true; return $missing; });
                echo json_encode([$other->await(), $file->await()->eof()]);
            });
            PHP);

        self::assertSame('[null,true]', $program->output, $program->errors);
    }

    /** @dataProvider waits */
    #[DataProvider('waits')]
    public function testASerializationThatWaitsIsNotMixedWithAnother(string $wait): void
    {
        $program = Subprocess::run("function pause(): void { $wait; }\n" . <<<'PHP'
            class Slow { public array $same; function __serialize(): array { pause(); return ['same' => $this->same]; } function __unserialize(array $data): void { pause(); $this->same = $data['same']; } }
            run(function () {
                $value = function () { $slow = new Slow; $part = new stdClass; $slow->same = [$part, $part]; return [$slow, $slow, $part]; };
                $alone = serialize($value());
                $tasks = array_map(fn() => async(fn() => serialize($value())), range(1, 5));
                echo json_encode(array_map(fn($task) => $task->await() === $alone, $tasks));
                $tasks = array_map(fn() => async(fn() => unserialize($alone) == $value()), range(1, 5));
                echo json_encode(array_map(fn($task) => $task->await(), $tasks));
            });
            PHP);

        self::assertSame('[true,true,true,true,true][true,true,true,true,true]', $program->output, $program->errors);
    }

    public function testACallbackOfAnOutputBufferThatWaitsBlocksSoThatOthersCanPrint(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                async(function () {
                    ob_start(function (string $text) { usleep(20_000); return strtoupper($text); });
                    echo 'first ';
                    ob_end_flush();
                });
                async(function () { echo 'second '; });
            });
            PHP);

        self::assertSame('FIRST second ', $program->output, $program->errors);
    }

    /** @param list<string> $extensions */
    private static function with(string $variable, string $code, array $extensions = []): Execution
    {
        $name = \explode('=', $variable)[0];
        $before = \getenv($name);
        \putenv($variable);
        try {
            return Subprocess::run($code, extensions: $extensions);
        } finally {
            \putenv($before === false ? $name : "$name=$before");
        }
    }

    /** What an exception leaves behind is freed, and to free a pipe is to wait for its process. */
    public function testOtherTasksContinueWhileAnExceptionWaitsForALibrary(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                $fail = function () {
                    $pipe = popen('for i in $(seq 4000); do [ -e ' . __FILE__ . '.end ] && break; sleep 0.01; done', 'r');
                    throw new LogicException('mine');
                };
                async(function () { delay(0.05); touch(__FILE__ . '.end'); });
                try {
                    $fail();
                } catch (LogicException $thrown) {
                    echo $thrown->getMessage(), is_file(__FILE__ . '.end') ? ' after the end' : ' before the end', $thrown->getPrevious() === null ? '' : ' with another one';
                }
                unlink(__FILE__ . '.end');
            });
            PHP);

        self::assertSame('mine after the end', $program->output, $program->errors);
    }

    /** Linux ends even a poll() that does not wait while a signal is pending. With a processor of its own the sender lets the other get 500 turns a second. */
    public function testASignalIsNotTakenForReadiness(): void
    {
        $program = Subprocess::run(<<<'PHP'
            pcntl_signal(SIGUSR1, function () {});
            $process = posix_getpid();
            $sender = pcntl_fork();
            if ($sender === 0) {
                while (posix_getppid() === $process) { posix_kill($process, SIGUSR1); }
                posix_kill(posix_getpid(), SIGKILL);
            }
            $pipe = function () { posix_mkfifo(__FILE__ . '.pipe', 0600); $end = fopen(__FILE__ . '.pipe', 'r+'); unlink(__FILE__ . '.pipe'); stream_set_read_buffer($end, 0); return $end; };
            [$there, $back] = [$pipe(), $pipe()];
            try {
                run(function () use ($there, $back) {
                    async(function () use ($there, $back) { while (fread($there, 1) === 'x') { fwrite($back, 'x'); } });
                    for ($i = 0; $i < 3_000; $i++) {
                        fwrite($there, 'x');
                        fread($back, 1);
                    }
                    fwrite($there, 'q');
                });
                echo 'done';
            } finally {
                posix_kill($sender, SIGKILL);
            }
            PHP);

        self::assertSame('done', $program->output, $program->errors);
    }
}
