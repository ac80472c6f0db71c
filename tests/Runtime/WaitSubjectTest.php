<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\TestCase;
use Weft\Http\ApplicationPool;
use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;
use Weft\Runtime\Hook;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Runtime\Task;
use Weft\Runtime\TaskInfo;
use Weft\Sql\Database;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\tasks;

/** A list of tasks tells for each wait what it is for, and the line of the application. */
final class WaitSubjectTest extends TestCase
{
    private const ROOT = __DIR__ . '/../../src';
    /** Functions that await on behalf of others, which have a subject: their callers are checked in their place. */
    private const PASS_ON = [
        'Pool/Internal/ResourceLifecycle.php await',
        'Pool/Internal/WorkListener.php await',
        'Pool/Internal/WorkListener.php handleWorkUntil',
        'Sql/Database.php await',
        'Sql/Internal/HookRunner.php await',
        'Sql/Internal/HookRunner.php through',
        'Sql/Transaction.php await',
    ];
    private const AWAITS = '/\b(?:Scheduler|Blocking|HookRunner)::(?:await|through)\(|->(?:lifecycle|listener|hookRunner)->await\(|\$hookRunner->await\(|\$this->await\((?!\.)/';

    public function testEveryFunctionThatAwaitsAnOperationNamesTheSubjectOfTheWait(): void
    {
        $unnamed = [];
        $found = 0;
        foreach (self::functionsThatAwait() as [$file, $function, $line]) {
            $found++;
            $reflection = self::reflect($file, $function);
            $reflection->getAttributes(WaitsFor::class) === [] && $unnamed[] = "src/$file:$line $function()";
        }

        self::assertGreaterThan(70, $found, 'the expression still finds the awaits');
        self::assertSame([], $unnamed, 'add #[WaitsFor(…)] to these functions');
    }

    public function testAWaitForAResourceNamesThePoolAndTheLineOfTheApplication(): void
    {
        run(static function (): void {
            $pool = new Pool(static fn(): \stdClass => new \stdClass(), new PoolOptions(size: 1, name: 'kernels'));
            $lease = $pool->borrow();
            $waiting = async(static fn() => $pool->borrow());
            $line = __LINE__ - 1;
            self::assertSame('a resource of pool "kernels"', self::waitOf($waiting)->waitsFor);
            self::assertSame(__FILE__ . ":$line", self::waitOf($waiting)->place);
            $waiting->cancel();
            $pool->return($lease);
        });
    }

    public function testAWaitWithoutALineOfTheApplicationHasASubjectToo(): void
    {
        run(static function (): void {
            $pool = new ApplicationPool(static fn(): \stdClass => new \stdClass(), 1, name: 'kernels');
            $held = $pool->borrow();
            $database = Database::connect('sqlite::memory:');
            $statement = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT max(i) FROM n';
            $subjects = [
                'a resource of pool "kernels"' => async($pool->borrow(...)),
                'the result of a statement' => async($database->execute(...), $statement),
                'a delay' => async(delay(...), 60.0),
            ];
            foreach ($subjects as $subject => $task) {
                self::assertSame([$subject, 'a line of Weft itself'], [self::waitOf($task)->waitsFor, self::waitOf($task)->place]);
                $task->cancel();
            }
            $held->release();
        });
    }

    public function testAFunctionOfPhpThatSuspendsIsTheSubjectWhereNoApplicationCalledIt(): void
    {
        run(static function (): void {
            $sleeping = async(\usleep(...), 60_000_000);
            self::assertSame('usleep()', self::waitOf($sleeping)->waitsFor);
            $sleeping->cancel();
        }, hooks: [Hook::Sleep]);
    }

    /** Of a task, once it waits. */
    private static function waitOf(Task $task): TaskInfo
    {
        while (true) {
            foreach (tasks() as $info) {
                if ($info->id === $task->id() && $info->waitsFor !== null) {
                    return $info;
                }
            }
            self::assertFalse($task->isDone(), 'the task has ended without a wait');
            delay(0.0);
        }
    }

    /** @return iterable<array{string, string, int}> file, function and line of each await */
    private static function functionsThatAwait(): iterable
    {
        $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(self::ROOT, \FilesystemIterator::SKIP_DOTS));
        foreach ($files as $path => $_) {
            $file = \substr((string) $path, \strlen(self::ROOT) + 1);
            if (\in_array($file, ['Runtime/Internal/Scheduler.php', 'Runtime/Internal/Blocking.php'], true)) {
                continue;
            }
            $function = '';
            foreach (\file((string) $path) ?: [] as $index => $line) {
                \preg_match('/^\s*(?:(?:public|private|protected|static|final) )*function (\w+)\(/', $line, $match) === 1 && $function = $match[1];
                if (\preg_match(self::AWAITS, $line) === 1 && !\in_array("$file $function", self::PASS_ON, true)) {
                    yield [$file, $function, $index + 1];
                }
            }
        }
    }

    private static function reflect(string $file, string $function): \ReflectionFunctionAbstract
    {
        if (!\ctype_upper(\basename($file)[0])) {
            return new \ReflectionFunction("Weft\\$function");
        }

        return new \ReflectionMethod('Weft\\' . \strtr(\substr($file, 0, -4), '/', '\\'), $function);
    }
}
