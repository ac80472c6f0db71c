<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\TestCase;

/** Destructors that the garbage collector calls: since PHP 8.4 in a fiber of its own, where a fiber runs it. */
final class CollectedDestructorTest extends TestCase
{
    private const GARBAGE = <<<'PHP'
        final class Garbage
        {
            private self $self;
            public function __construct(private Closure $end) { $this->self = $this; }
            public function __destruct() { ($this->end)(); }
        }

        PHP;

    public function testItSeesTheRealmInWhichTheCollectorRuns(): void
    {
        self::assertProgram("first first\nsecond second\nthird third\n", <<<'PHP'
            final class Registry { public static string $current = 'declared'; }
            Weft\Runtime\Realm::isolate('Registry::current');
            run(static function (): void {
                foreach (['first', 'second', 'third'] as $name) {
                    (new Weft\Runtime\Realm())->run(static function () use ($name): void {
                        $_GET['name'] = Registry::$current = $name;
                        new Garbage(static function () use ($name): void { echo "$_GET[name] "; header("X-Name: $name"); });
                        gc_collect_cycles();
                        echo Registry::$current, "\n";
                    });
                }
            });
            PHP);
    }

    public function testItSeesNoRealmWhereTheCollectorRunsOutsideOfThem(): void
    {
        self::assertProgram("inside\nnone\ninside\n", <<<'PHP'
            run(static function (): void {
                $collect = static function (): void {
                    new Garbage(static function (): void { echo $_GET['name'] ?? 'none', "\n"; });
                    gc_collect_cycles();
                };
                $inside = async(static fn() => (new Weft\Runtime\Realm())->run(static function () use ($collect): void {
                    $_GET['name'] = 'inside';
                    $collect();
                    delay(0.001);
                    $collect();
                }));
                yieldNow();
                $collect();
                $inside->await();
            });
            PHP);
    }

    public function testARealmOutlivesNoCollectionThatRanInIt(): void
    {
        self::assertProgram("freed\n", <<<'PHP'
            run(static function (): void {
                $realm = new Weft\Runtime\Realm();
                $realm->run(static function (): void { new Garbage(static function (): void {}); gc_collect_cycles(); });
                $native = WeakReference::create((fn() => $this->native)->call($realm));
                unset($realm);
                echo $native->get() === null ? "freed\n" : "kept\n";
            });
            PHP);
    }

    public function testExitInsideOfARealmEndsTheWorkInTheRealm(): void
    {
        self::assertProgram("bye\nended\n", <<<'PHP'
            run(static function (): void {
                try {
                    (new Weft\Runtime\Realm())->run(static function (): void {
                        new Garbage(static function (): void { exit("bye\n"); });
                        gc_collect_cycles();
                        echo "goes on\n";
                    });
                } catch (Weft\Runtime\ExitException) {
                    echo "ended\n";
                }
            });
            PHP);
    }

    public function testItMayWaitWhichMakesATaskOfTheRestOfIt(): void
    {
        self::needsAFiberOfTheCollector();
        self::assertProgram("begins\nbegins\ncollected\ntwo ends\none ends\n", <<<'PHP'
            run(static function (): void {
                foreach (['one' => 0.02, 'two' => 0.01] as $name => $seconds) {
                    new Garbage(static function () use ($name, $seconds): void { echo "begins\n"; delay($seconds); delay($seconds); echo "$name ends\n"; });
                }
                gc_collect_cycles();
                echo "collected\n";
                delay(0.2);
            });
            PHP);
    }

    public function testThatTaskUsesWhatTasksUse(): void
    {
        self::needsAFiberOfTheCollector();
        self::assertProgram("task sees local\nhas the lock\ntimed out\nchild\ndestructor\n", <<<'PHP'
            run(static function (): void {
                $local = new Weft\Runtime\Local('outside');
                $lock = new Mutex();
                $local->set('local');
                $lock->lock();
                new Garbage(static function () use ($local, $lock): void {
                    echo 'task sees ', $local->value(), "\n";
                    $lock->lock();
                    echo "has the lock\n";
                    try { timeout(0.001, static fn() => delay(60)); } catch (Weft\Runtime\TimeoutException) { echo "timed out\n"; }
                    echo async(static fn() => "child\n")->await();
                    echo current()->name(), "\n";
                    $lock->unlock();
                });
                gc_collect_cycles();
                $lock->unlock();
                $done = new Channel(1);
                delay(0.0);
                $lock->lock();
            });
            PHP);
    }

    public function testItsLibrariesSuspendThatTask(): void
    {
        self::needsAFiberOfTheCollector();
        self::assertProgram("other\nslept\n", <<<'PHP'
            run(static function (): void {
                new Garbage(static function (): void { delay(0.001); usleep(100_000); echo "slept\n"; });
                gc_collect_cycles();
                $other = async(static function (): void { delay(0.01); echo "other\n"; });
                $other->await();
                delay(0.3);
            }, hooks: Weft\Runtime\Hook::cases());
            PHP);
    }

    public function testItsFailureIsThatOfADetachedTask(): void
    {
        self::needsAFiberOfTheCollector();
        self::assertProgram("destructor: too late\n", <<<'PHP'
            run(static function (): void {
                new Garbage(static function (): void { delay(0.001); throw new RuntimeException('too late'); });
                gc_collect_cycles();
                delay(0.05);
            }, uncaught: static function (Throwable $thrown, $task): void { echo $task->name(), ': ', $thrown->getMessage(), "\n"; });
            PHP);
    }

    public function testTheEndOfRunCancelsIt(): void
    {
        self::needsAFiberOfTheCollector();
        self::assertProgram("waits\ncancelled\nunwound\n", <<<'PHP'
            run(static function (): void {
                new Garbage(static function (): void { try { delay(60); } catch (CancelledException) { echo "cancelled\n"; } });
                gc_collect_cycles();
                delay(0.001);
                echo "waits\n";
            });
            run(static function (): void {
                new Garbage(static function (): void { try { delay(60); } finally { echo "unwound\n"; } });
                gc_collect_cycles();
            });
            PHP);
    }

    public function testInARealmTheProcessWaits(): void
    {
        self::assertProgram("waited\ngoes on\n", <<<'PHP'
            run(static function (): void {
                (new Weft\Runtime\Realm())->run(static function (): void {
                    new Garbage(static function (): void { yieldNow(); delay(0.01); echo "waited\n"; });
                    gc_collect_cycles();
                    echo "goes on\n";
                });
            });
            PHP);
    }

    public function testInARealmItCannotWaitForAnotherTask(): void
    {
        self::assertProgram("Error\n", <<<'PHP'
            run(static function (): void {
                (new Weft\Runtime\Realm())->run(static function (): void {
                    $lock = new Mutex();
                    async($lock->lock(...))->await();
                    new Garbage(static function () use ($lock): void { $lock->lock(); });
                    try { gc_collect_cycles(); } catch (Error $error) { echo get_class($error), "\n"; }
                });
            });
            PHP);
    }

    private static function assertProgram(string $output, string $code): void
    {
        $program = Subprocess::run(self::GARBAGE . $code);

        self::assertSame(['', $output], [$program->errors, $program->output]);
    }

    private static function needsAFiberOfTheCollector(): void
    {
        if (\PHP_VERSION_ID < 80400) {
            self::markTestSkipped('before PHP 8.4 a destructor cannot wait');
        }
    }
}
