<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\TestCase;

/** How a process with suspended tasks ends. */
final class ProcessTest extends TestCase
{
    private const OTHERS = <<<'PHP'
        register_shutdown_function(fn() => print("shutdown\n"));
        function waitForEver(): void {
            try { delay(3600); } finally { echo "finally\n"; }
        }
        PHP;

    public function testExitInATaskEndsTheProcessWithFinallyBlocksAndShutdownFunctions(): void
    {
        $program = Subprocess::run(self::OTHERS . <<<'PHP'
            run(function () {
                async(waitForEver(...));
                async(function () { (new Channel())->receive(); });
                yieldNow();
                exit(3);
            });
            echo "not reached\n";
            PHP);

        self::assertSame("shutdown\nfinally\n", $program->output);
        self::assertSame('', $program->errors);
        self::assertSame(3, $program->exitCode);
    }

    public function testAFinallyBlockCanStillWaitWhileTheProcessEnds(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                async(function () {
                    try { delay(3600); } finally { delay(0.02); echo "cleaned\n"; }
                });
                yieldNow();
                exit(0);
            });
            PHP);

        self::assertSame("cleaned\n", $program->output);
        self::assertSame('', $program->errors);
    }

    public function testAFinallyBlockThatWaitsForAnotherTaskWhileTheProcessEndsFailsInsteadOfHanging(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                async(function () {
                    try { delay(3600); } finally {
                        try { (new Channel())->receive(); } catch (\Throwable $e) { echo $e::class, "\n"; }
                    }
                });
                yieldNow();
                exit(0);
            });
            PHP);

        self::assertSame("Weft\\Runtime\\DeadlockException\n", $program->output);
    }

    public function testWeftCanBeUsedInAShutdownFunctionAfterExitInATask(): void
    {
        $program = Subprocess::run(<<<'PHP'
            register_shutdown_function(function () {
                delay(0.01);
                echo run(fn() => all([fn() => 1, fn() => 2]))[1], "\n";
            });
            run(function () { async(fn() => delay(3600)); yieldNow(); exit(0); });
            PHP);

        self::assertSame("2\n", $program->output);
        self::assertSame('', $program->errors);
    }

    public function testAFatalErrorInATaskEndsTheProcessWhileOthersAreSuspended(): void
    {
        $program = Subprocess::run(self::OTHERS . <<<'PHP'
            run(function () {
                async(waitForEver(...));
                yieldNow();
                eval('function waitForEver() {}');
            });
            PHP);

        self::assertMatchesRegularExpression('/Cannot redeclare (function )?waitForEver\(\)/', $program->errors);
        self::assertStringContainsString("shutdown\n", $program->output);
        self::assertSame(255, $program->exitCode);
        self::assertNull($program->signal);
    }

    public function testRunningOutOfMemoryInATaskEndsTheProcess(): void
    {
        $program = Subprocess::run(self::OTHERS . <<<'PHP'
            ini_set('memory_limit', '16M');
            run(function () {
                async(waitForEver(...));
                yieldNow();
                str_repeat('x', 64 << 20);
            });
            PHP);

        self::assertStringContainsString('Allowed memory size', $program->errors);
        self::assertStringContainsString("shutdown\n", $program->output);
        self::assertSame(255, $program->exitCode);
    }

    public function testAnExceptionNobodyCatchesEndsTheProcessWithItsTrace(): void
    {
        $program = Subprocess::run(self::OTHERS . <<<'PHP'
            run(function () {
                async(waitForEver(...));
                yieldNow();
                async(fn() => throw new DomainException('no such customer'));
            });
            PHP);

        self::assertStringContainsString('Uncaught DomainException: no such customer', $program->errors);
        self::assertSame("finally\nshutdown\n", $program->output);
        self::assertSame(255, $program->exitCode);
    }

    public function testAFailedDetachedTaskIsReportedAsAWarningWithItsTrace(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                detach(fn() => throw new DomainException('no such customer'))->named('mailer');
                yieldNow();
                echo "goes on\n";
            });
            PHP);

        self::assertMatchesRegularExpression('/Warning: .*detached task #2 mailer: DomainException: no such customer/', $program->errors);
        self::assertStringContainsString('Stack trace', $program->errors);
        self::assertSame("goes on\n", $program->output);
        self::assertSame(0, $program->exitCode);
    }

    public function testATaskThatSuspendsItsFiberItselfIsReportedAndUnwound(): void
    {
        $program = Subprocess::run(<<<'PHP'
            try {
                run(function () { try { Fiber::suspend(); } finally { echo "finally\n"; } });
            } catch (Weft\Runtime\DeadlockException $e) {
                echo $e->getMessage(), "\n";
            }
            echo "end\n";
            PHP);

        self::assertMatchesRegularExpression(
            '/^finally\nDeadlock.*\n  #1 main .* waits for a Fiber::suspend\(\) of its own at .*\nend\n$/',
            $program->output,
        );
        self::assertSame('', $program->errors);
        self::assertSame(0, $program->exitCode);
    }

    public function testAForkedChildIsRefusedAndTheParentGoesOn(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('pcntl is not there');
        }
        $program = Subprocess::run(<<<'PHP'
            delay(0.001);
            $parent = getmypid();
            $child = pcntl_fork();
            if ($child === 0) {
                try { delay(0.001); } catch (Weft\Runtime\ForkedProcessError $e) {
                    echo $e->parent === $parent && $e->child === getmypid() ? $e->getMessage() : 'wrong pids', "\n";
                }
                exit(0);
            }
            pcntl_waitpid($child, $status);
            delay(0.001);
            echo "parent goes on\n";
            PHP);

        self::assertMatchesRegularExpression('/^Weft was started in process \d+ and cannot be used in its forked child \d+/', $program->output);
        self::assertStringEndsWith("parent goes on\n", $program->output);
        self::assertSame(0, $program->exitCode);
    }

    public function testASignalCancelsTheMainTaskOnRequest(): void
    {
        $program = Subprocess::run(<<<'PHP'
            try {
                run(function () {
                    echo "ready\n";
                    try { delay(3600); } finally { echo "finally\n"; }
                }, cancelOn: [SIGINT, SIGTERM]);
            } catch (CancelledException $e) {
                echo $e->getMessage(), "\n";
            }
            PHP, ["ready\n", SIGINT]);

        self::assertSame("ready\nfinally\nTask #1 main was cancelled: the process received signal 2\n", $program->output);
        self::assertSame(0, $program->exitCode);
    }

    public function testASignalThatCannotBeCaughtIsNamedBeforeTheProgramRuns(): void
    {
        $program = Subprocess::run('try { run(static fn() => print("ran"), cancelOn: [SIGTERM, SIGKILL]); } catch (Weft\UsageError $e) { echo $e->getMessage(); }');

        self::assertSame('cannot wait for signal 9: signal 9 does not exist or cannot be caught', $program->output);
    }

    public function testASignalEndsAProcessThatDoesNotListen(): void
    {
        $program = Subprocess::run('run(function () { echo "ready\n"; delay(3600); });', ["ready\n", SIGTERM]);

        self::assertSame(SIGTERM, $program->signal);
    }

    public function testAnExceptionOfASignalHandlerCancelsTheTasksAndComesOutOfRun(): void
    {
        $program = Subprocess::run(<<<'PHP'
            pcntl_async_signals(true);
            pcntl_signal(SIGALRM, fn() => throw new DomainException('the job takes too long'));
            try {
                run(function () {
                    async(function () {
                        try {
                            delay(3600);
                        } catch (CancelledException $cancelled) {
                            echo "cancelled\n";
                            throw $cancelled;
                        } finally {
                            delay(0.001);
                            echo "cleaned\n";
                        }
                    });
                    pcntl_alarm(1);
                    // The signal finds the loop waiting, and its handler runs when the loop wakes, which the end of this delay does.
                    shield(function () {
                        delay(1.5);
                        delay(0.001);
                        echo "shielded\n";
                    });
                    delay(3600);
                });
            } catch (DomainException $failure) {
                echo 'run() threw: ', $failure->getMessage(), "\n";
            }
            echo pcntl_async_signals() ? 'asynchronous' : 'not asynchronous', "\n";
            PHP);

        self::assertSame("shielded\ncancelled\ncleaned\nrun() threw: the job takes too long\nasynchronous\n", $program->output . $program->errors);
    }

    public function testAnApplicationCallsItsStopHooksWhenASignalHandlerThrows(): void
    {
        $program = Subprocess::run(<<<'PHP'
            pcntl_async_signals(true);
            pcntl_signal(SIGALRM, fn() => throw new DomainException('the job takes too long'));
            $app = new Weft\App(grace: 1.0);
            $app->task('job', function () { pcntl_alarm(1); delay(1.5); delay(3600); });
            $app->onStop(fn() => print("stopped\n"));
            try {
                $app->run();
            } catch (DomainException $failure) {
                echo 'run() threw: ', $failure->getMessage(), "\n";
            }
            PHP);

        self::assertSame("stopped\nrun() threw: the job takes too long\n", $program->output . $program->errors);
    }

    public function testAnApplicationLogsTheFailureOfADetachedTask(): void
    {
        $program = Subprocess::run(<<<'PHP'
            set_error_handler(fn($level, $message) => throw new ErrorException($message));
            $app = new Weft\App(new Weft\Log\StreamLogger(STDOUT), grace: 1.0);
            $app->onStart(function () { detach(fn() => throw new DomainException('the audit failed'))->named('audit'); });
            $app->task('end', function () { delay(0.01); posix_kill(getmypid(), SIGTERM); }, Weft\RestartPolicy::never());
            $app->run();
            PHP);

        self::assertStringContainsString('The detached task audit failed: the audit failed', $program->output . $program->errors);
        self::assertSame(0, $program->exitCode);
    }

    public function testATaskCannotBeSuspendedInADestructorBeforePhp84(): void
    {
        $program = Subprocess::run(<<<'PHP'
            final class Late { public function __destruct() { delay(0.01); } }
            run(function () {
                try { $late = new Late(); unset($late); echo "suspended\n"; } catch (\Error $e) { echo $e->getMessage(), "\n"; }
                delay(0.01);
                echo "goes on\n";
            });
            PHP);

        $expected = PHP_VERSION_ID < 80400 ? 'before PHP 8.4 a task cannot be suspended inside a destructor' : 'suspended';
        self::assertStringContainsString($expected, $program->output);
        self::assertStringEndsWith("goes on\n", $program->output);
    }

    public function testExitInATaskUnlocksTheMutexOfAnother(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                $mutex = new Mutex();
                async(fn() => $mutex->synchronized(fn() => delay(3600)));
                yieldNow();
                exit(3);
            });
            PHP);

        self::assertSame('', $program->errors);
        self::assertSame(3, $program->exitCode);
    }

    public function testCleanUpThatFailsWhileTheProcessEndsIsAWarning(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                async(function () { try { delay(3600); } finally { throw new DomainException('no clean-up'); } });
                async(function () { try { delay(3600); } finally { echo "the other one\n"; } });
                yieldNow();
                exit(3);
            });
            PHP);

        self::assertMatchesRegularExpression('/Warning: .*clean-up of task #2 .*DomainException: no clean-up/', $program->errors);
        self::assertStringNotContainsString('FiberError', $program->errors);
        self::assertSame("the other one\n", $program->output);
        self::assertSame(3, $program->exitCode);
    }
}
