<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** Functions of `set_error_handler()` that wait. */
final class ErrorHandlerTest extends TestCase
{
    private const SET = <<<'PHP'
        set_error_handler(static function (int $level, string $message): bool {
            echo "$message begins, ";
            delay(0.005);
            echo "$message ends, ";

            return true;
        });
        PHP;

    /** @dataProvider scopes */
    #[DataProvider('scopes')]
    public function testWhileOneWaitsItHandlesTheErrorsOfOtherTasks(string $before, string $after): void
    {
        $set = self::SET;
        $ended = Subprocess::run(<<<PHP
            run(static function (): void {
                $before
                $set
                all([
                    static function (): void { trigger_error('first'); echo 'one, '; },
                    static function (): void { trigger_error('second'); echo 'two, '; },
                ]);
                trigger_error('third');
                $after
            });
            PHP);

        $expected = 'first begins, second begins, first ends, one, second ends, two, third begins, third ends, ';
        self::assertSame([$expected, '', 0], [$ended->output, $ended->errors, $ended->exitCode]);
    }

    /** @dataProvider scopes */
    #[DataProvider('scopes')]
    public function testWhileOneWaitsAnotherTaskSetsItsOwnAndRestoresIt(string $before, string $after): void
    {
        $set = self::SET;
        $ended = Subprocess::run(<<<PHP
            run(static function (): void {
                $before
                $set
                all([
                    static function (): void { trigger_error('first'); },
                    static function (): void {
                        set_error_handler(static fn(int \$level, string \$message): bool => print "own \$message, ");
                        trigger_error('second');
                        delay(0.01);
                        trigger_error('third');
                        restore_error_handler();
                    },
                ]);
                trigger_error('fourth');
                $after
            });
            PHP);

        $expected = 'first begins, own second, first ends, own third, fourth begins, fourth ends, ';
        self::assertSame([$expected, '', 0], [$ended->output, $ended->errors, $ended->exitCode]);
    }

    /** @return iterable<string, array{string, string}> */
    public static function scopes(): iterable
    {
        yield 'outside of realms' => ['', ''];
        yield 'in a realm' => ['(new Weft\Runtime\Realm())->run(static function (): void {', '});'];
    }

    public function testOneThatIsCalledInAnotherDoesNotCallItself(): void
    {
        $ended = Subprocess::run(<<<'PHP'
            run(static function (): void {
                set_error_handler(static function (int $level, string $message): bool {
                    delay(0.001);
                    echo "$message, ";
                    @trigger_error('nested');

                    return true;
                });
                trigger_error('outer');
                delay(0.001);
                trigger_error('again');
            });
            PHP);

        self::assertSame(['outer, again, ', '', 0], [$ended->output, $ended->errors, $ended->exitCode]);
    }

    public function testRealmsKeepTheirOwnWhileBothWait(): void
    {
        $ended = Subprocess::run(<<<'PHP'
            $work = static fn(string $name): Closure => static fn(): mixed => (new Weft\Runtime\Realm())->run(static function () use ($name): void {
                set_error_handler(static function (int $level, string $message) use ($name): bool {
                    delay(0.003);
                    echo "$name $message, ";

                    return true;
                });
                trigger_error('1');
                trigger_error('2');
                all([static fn() => trigger_error('3'), static fn() => trigger_error('4')]);
            });
            set_error_handler(static fn(int $level, string $message): bool => print "process $message, ");
            run(static fn() => all([$work('a'), $work('b')]));
            trigger_error('5');
            PHP);

        self::assertSame(['a 1, b 1, a 2, b 2, a 3, a 4, b 3, b 4, process 5, ', '', 0], [$ended->output, $ended->errors, $ended->exitCode]);
    }

    /**
     * The compiler calls it in the middle of a file. Another task that compiles meanwhile would add to the same code.
     *
     * @dataProvider scopes
     */
    #[DataProvider('scopes')]
    public function testWhereTheCompilerCallsItTheProcessWaits(string $before, string $after): void
    {
        $ended = Subprocess::run(<<<PHP
            foreach ([1, 2] as \$n) {
                \$lines = implode("\n", array_map(static fn(int \$i): string => "\\\$sum = (\\\$sum ?? 0) + \$i * \$n;", range(1, 100)));
                file_put_contents(\$files[\$n] = tempnam(sys_get_temp_dir(), 'weft'), "<?php function f\$n(int \\\$a = 1, \\\$b) { \$lines return \\\$sum; } return f\$n(1, 2);");
            }
            run(static function (): void {
                $before
                set_error_handler(static function (int \$level, string \$message): bool {
                    delay(0.003);

                    return true;
                });
                echo implode(' ', all([static fn() => include \$GLOBALS['files'][1], static fn() => include \$GLOBALS['files'][2]]));
                $after
            });
            array_map(unlink(...), \$files);
            PHP);

        self::assertSame(['5050 10100', '', 0], [$ended->output, $ended->errors, $ended->exitCode]);
    }
}
