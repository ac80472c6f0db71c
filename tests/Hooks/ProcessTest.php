<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Runtime\TimeoutException;
use Weft\Tests\Runtime\Subprocess;
use Weft\Tests\Timing;

use function Weft\all;
use function Weft\run;
use function Weft\timeout;

/** Child processes of tasks. */
final class ProcessTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-children-' . \bin2hex(\random_bytes(4));
        \mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    /**
     * Each of ten children waits until all ten run, so it ends only if the others are started while it is waited for.
     *
     * @dataProvider calls
     *
     * @param \Closure(string): mixed $call
     */
    #[DataProvider('calls')]
    public function testOtherTasksContinueWhileAChildIsWaitedFor(\Closure $call, mixed $expected): void
    {
        $command = "touch {$this->directory}/\$\$; while [ \$(ls {$this->directory} | wc -l) -lt 10 ]; do sleep 0.01; done;";

        $results = run(static fn(): array => timeout(Timing::DEADLINE, static fn(): array => all(\array_fill(0, 10, static fn(): mixed => $call($command)))));

        self::assertSame(\array_fill(0, 10, $expected), $results);
    }

    public function testAVariableThatACallFillsMayChangeMeanwhile(): void
    {
        $program = Subprocess::run(<<<'PHP'
            final class Typed { public array $lines = ['first']; }
            run(static function (): void {
                $typed = new Typed();
                $output = ['first'];
                $code = $usage = null;
                $tasks = [
                    async(static function () use (&$output, &$code): void { exec('sleep 0.05; echo hi; exit 3', $output, $code); }),
                    async(static function () use ($typed): void { exec('sleep 0.05; echo hi', $typed->lines); }),
                    async(static function () use (&$usage): void {
                        $child = proc_open(['sleep', '0.05'], [], $pipes);
                        pcntl_waitpid(proc_get_status($child)['pid'], $status, 0, $usage);
                    }),
                ];
                yieldNow();
                yieldNow();
                $copy = $output;
                $output = $code = $usage = 'changed';
                $typed->lines = [];
                $others = array_map(static fn(int $i): string => str_repeat('x', $i), range(1, 500));
                foreach ($tasks as $task) { $task->await(); }
                echo json_encode([$output, $code, $copy, $typed->lines, is_array($usage)]);
            });
            PHP, under: ['env', 'USE_ZEND_ALLOC=0', 'MALLOC_PERTURB_=165']);

        self::assertSame(['', '[["first","hi"],3,["first"],["first","hi"],true]'], [$program->errors, $program->output]);
    }

    public static function calls(): iterable
    {
        yield 'exec()' => [static function (string $command): array {
            $last = \exec("$command echo one; echo two; exit 3", $lines, $code);

            return [$last, $lines, $code];
        }, ['two', ['one', 'two'], 3]];
        yield 'exec() of what closes its output' => [static function (string $command): int {
            \exec("exec >&- 2>&-; $command exit 4", $lines, $code);

            return $code;
        }, 4];
        yield 'shell_exec()' => [static fn(string $command): mixed => \shell_exec("$command echo output"), "output\n"];
        yield 'popen()' => [static function (string $command): array {
            $pipe = \popen("$command cat > /dev/null; exit 5", 'w');
            \fwrite($pipe, 'input');

            return [\pclose($pipe)];
        }, [5]];
        yield 'proc_close()' => [static function (string $command): int {
            $process = \proc_open("$command exit 6", [], $pipes);

            return \proc_close($process);
        }, 6];
        yield 'pipes of proc_open()' => [static function (string $command): array {
            $process = \proc_open("$command cat; exit 7", [['pipe', 'r'], ['pipe', 'w']], $pipes);
            \fwrite($pipes[0], 'through');
            \fclose($pipes[0]);

            return [\stream_get_contents($pipes[1]), \proc_close($process)];
        }, ['through', 7]];
        if (\function_exists('pcntl_fork')) {
            yield 'pcntl_waitpid()' => [static function (string $command): int {
                $process = \proc_open("$command exit 8", [], $pipes);
                $child = \proc_get_status($process);
                if (!$child['running']) {
                    // It was the last of the ten, and this call has taken its status.
                    return $child['exitcode'];
                }
                \pcntl_waitpid($child['pid'], $status);

                return \pcntl_wexitstatus($status);
            }, 8];
        }
    }

    /**
     * @dataProvider cancelled
     *
     * @param \Closure(string): mixed $call
     */
    #[DataProvider('cancelled')]
    public function testTheChildOfACancelledTaskIsEnded(\Closure $call): void
    {
        $file = "{$this->directory}/pid";
        try {
            run(static fn(): mixed => timeout(0.3, static fn(): mixed => $call("echo \$\$ > $file; exec sleep 600")));
            self::fail('It was not cancelled');
        } catch (TimeoutException) {
        }

        // The task may have been cancelled before the shell has written its number.
        Timing::until(static fn(): bool => \is_file($file) && (int) \file_get_contents($file) > 0 && !\is_dir('/proc/' . (int) \file_get_contents($file)), 'the end of the child');
        self::assertFileExists($file);
    }

    public static function cancelled(): iterable
    {
        yield 'exec()' => [static fn(string $command): mixed => \exec($command)];
        yield 'exec() of what closes its output' => [static fn(string $command): mixed => \exec("exec >&-; $command")];
        yield 'proc_close()' => [static fn(string $command): int => \proc_close(\proc_open($command, [], $pipes))];
    }

    public function testAStoppedChildIsToldOf(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                $child = pcntl_fork();
                if ($child === 0) {
                    // By then its parent waits.
                    usleep(50_000);
                    posix_kill(posix_getpid(), SIGSTOP);
                    posix_kill(posix_getpid(), SIGKILL);
                }
                echo pcntl_waitpid($child, $status, WUNTRACED) === $child && pcntl_wifstopped($status) ? 'stopped' : 'not stopped';
                posix_kill($child, SIGKILL);
                pcntl_waitpid($child, $status);
            });
            PHP);

        self::assertSame('stopped', $program->output, $program->errors);
    }

    public function testATaskThatWaitsForAnyChildLeavesThoseAloneThatOthersWaitFor(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                $own = pcntl_fork();
                if ($own === 0) {
                    while (!is_file(__FILE__ . '.end')) { usleep(1000); clearstatcache(); }
                    posix_kill(posix_getpid(), SIGKILL);
                }
                $any = async(fn() => pcntl_wait($status));
                $codes = [];
                for ($code = 1; $code <= 20; $code++) {
                    $codes[] = proc_close(proc_open(['sh', '-c', "sleep 0.01; exit $code"], [], $pipes));
                }
                touch(__FILE__ . '.end');
                echo json_encode($codes === range(1, 20)), json_encode($any->await() === $own);
                unlink(__FILE__ . '.end');
            });
            PHP);

        self::assertSame('truetrue', $program->output, $program->errors);
    }

    public function testAForkedChildThatEndsLeavesTheProcessesOfItsParent(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                $process = proc_open(['sh', '-c', 'for i in $(seq 4000); do [ -e "$0" ] && exit 9; sleep 0.01; done', __FILE__ . '.end'], [], $pipes);
                $task = async(fn() => proc_close($process));
                yieldNow();
                $child = pcntl_fork();
                if ($child === 0) {
                    exit(0);
                }
                pcntl_waitpid($child, $status);
                touch(__FILE__ . '.end');
                echo $task->await();
                unlink(__FILE__ . '.end');
            });
            PHP);

        self::assertSame('9', $program->output, $program->errors);
    }
}
