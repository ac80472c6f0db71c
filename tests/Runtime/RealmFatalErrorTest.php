<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Execution;
use Weft\Tests\Hooks\Support\Module;

/** A fatal error while PHP switches fibers: shutdown functions run as after any other, with fibers and in the state of the process. */
final class RealmFatalErrorTest extends TestCase
{
    /** More than any of the programs allocates. */
    private const MOST_ALLOCATIONS = 100;

    private const PROGRAM = <<<'PHP'
        use Weft\Native\Realm;

        register_shutdown_function(static function (): void {
            fail_allocation(0);
            $fiber = new Fiber(static function (): void { Fiber::suspend(); echo 'fiber '; });
            $fiber->start();
            $fiber->resume();
            echo Realm::current() === null ? 'outside ' : 'inside ', $_GET['n'] ?? 'none';
        });

        function enter(): Realm
        {
            $realm = new Realm();
            $realm->enter();
            $_GET['n'] = 1;
            $_SESSION = [];
            ini_set('precision', '5');
            ini_set('serialize_precision', '5');
            setlocale(LC_ALL, 'C.UTF-8');

            return $realm;
        }

        /** The switch is over. */
        function goOn(): void
        {
            fail_allocation(0);
            for ($i = 0; $i < 100; ++$i) { sqrt($i); }
            echo 'went on ';
        }

        PHP;

    private Module $module;

    protected function setUp(): void
    {
        $this->module = Module::compile('failing-memory');
    }

    protected function tearDown(): void
    {
        $this->module->remove();
    }

    public function testTasksOfAShutdownFunctionWaitAfterAFatalErrorInACompilation(): void
    {
        $file = \tempnam(\sys_get_temp_dir(), 'weft-broken-') ?: self::fail('no file');
        \file_put_contents($file, '<?php class Twice {} class Twice {}');
        try {
            $ended = Subprocess::run(\sprintf(<<<'PHP'
                register_shutdown_function(static function (): void {
                    Weft\run(static function (): void {
                        $task = Weft\async(static function (): string { Weft\delay(0.01); return 'waited'; });
                        echo $task->await();
                    });
                });
                ini_set('display_errors', '0');
                include %s;
                PHP, \var_export($file, true)));
        } finally {
            \unlink($file);
        }

        self::assertSame('waited', $ended->output, $ended->errors);
    }

    /** @dataProvider programs */
    #[DataProvider('programs')]
    public function testMemoryMayRunOutAnywhereInASwitch(string $code): void
    {
        for ($number = 1; $number < self::MOST_ALLOCATIONS; ++$number) {
            $ended = $this->execute(\str_replace('NUMBER', (string) $number, $code));
            if (\str_starts_with($ended->output, 'went on')) {
                self::assertSame(['went on fiber outside none', '', 0], [$ended->output, $ended->errors, $ended->exitCode]);
                break;
            }
            self::assertStringContainsString('There is no memory left', $ended->errors, "allocation $number: exit code {$ended->exitCode}, signal {$ended->signal}, output \"{$ended->output}\"");
            self::assertSame(['fiber outside none', 255, null], [$ended->output, $ended->exitCode, $ended->signal], "allocation $number: $ended->errors");
        }
        self::assertLessThan(self::MOST_ALLOCATIONS, $number);
    }

    /** @return iterable<string, array{string}> */
    public static function programs(): iterable
    {
        yield 'a fiber in a realm is suspended' => [<<<'PHP'
            run(static function (): void {
                $inner = new Fiber(static function (): void { enter(); fail_allocation(NUMBER); Fiber::suspend(); });
                $inner->start();
                goOn();
            });
            PHP];

        yield 'a fiber in a realm is resumed' => [<<<'PHP'
            $fiber = new Fiber(static function (): void { enter(); Fiber::suspend(); goOn(); });
            $fiber->start();
            fail_allocation(NUMBER);
            $fiber->resume();
            PHP];

        yield 'a fiber in a realm ends' => [<<<'PHP'
            $fiber = new Fiber(static function (): void { global $realm; $realm = enter(); fail_allocation(NUMBER); });
            $fiber->start();
            goOn();
            PHP];

        yield 'a fiber leaves its realm' => [<<<'PHP'
            $fiber = new Fiber(static function (): void { enter(); fail_allocation(NUMBER); Realm::leave(); goOn(); });
            $fiber->start();
            PHP];

        yield 'a fiber is suspended in a callback of PHP' => [<<<'PHP'
            run(static function (): void {
                $inner = new Fiber(static function (): void {
                    $numbers = [2, 1];
                    usort($numbers, static function (): int { fail_allocation(NUMBER); Fiber::suspend(); return 0; });
                });
                $inner->start();
                goOn();
            });
            PHP];
    }

    /** @dataProvider switches */
    #[DataProvider('switches')]
    public function testADestructorThatASettingCallsDuringASwitchMayFail(string $leave): void
    {
        $ended = $this->execute(<<<PHP
            error_reporting(E_ALL & ~E_DEPRECATED);
            final class Fails
            {
                public function __invoke(): void {}
                public function __destruct() { eval('class NoBody { function f(); }'); }
            }
            run(static function (): void {
                \$inner = new Fiber(static function (): void {
                    enter();
                    ini_set('assert.callback', 'strlen');
                    assert_options(ASSERT_CALLBACK, new Fails());
                    $leave
                });
                \$inner->start();
                goOn();
            });
            PHP);

        self::assertStringContainsString('Non-abstract method NoBody::f() must contain body', $ended->errors);
        self::assertSame(['fiber outside none', 255, null], [$ended->output, $ended->exitCode, $ended->signal], $ended->errors);
    }

    /** @return iterable<string, array{string}> */
    public static function switches(): iterable
    {
        yield 'the fiber is suspended' => ['Fiber::suspend();'];
        yield 'the fiber ends' => ['global $fiber; $fiber = Fiber::getCurrent();'];
        yield 'the fiber leaves the realm' => ['Realm::leave();'];
    }

    private function execute(string $code): Execution
    {
        return Subprocess::run(self::PROGRAM . $code, options: ["extension={$this->module->file}"]);
    }
}
