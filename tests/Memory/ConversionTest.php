<?php

declare(strict_types=1);

namespace Weft\Tests\Memory;

use PHPUnit\Framework\TestCase;
use Weft\Native\MetricsEndpoint;
use Weft\Sql\Database;
use Weft\Sql\InvalidParameterException;
use Weft\Tests\Runtime\Subprocess;

use function Weft\Native\addToCounter;
use function Weft\run;

/**
 * PHP code that runs while the extension reads a value changes that value. `make test-memory` repeats these tests where every
 * access to memory is checked.
 */
final class ConversionTest extends TestCase
{
    private Database $database;

    protected function setUp(): void
    {
        $this->database = Database::connect('sqlite::memory:');
    }

    public function testAListThatGrowsBehindAReferenceIsSentAsItWas(): void
    {
        $list = [null, 1, 'text'];
        $list[0] = new Callback(static function () use (&$list): int {
            for ($item = 0; $item < 10_000; $item++) {
                $list[] = $item;
            }

            return 7;
        });

        self::assertSame('[7,1,"text"]', $this->sent([&$list]));
        self::assertCount(10_003, $list);
    }

    public function testAListThatIsReleasedBehindAReferenceIsSentAsItWas(): void
    {
        $list = [null, str_repeat('text', 3), [str_repeat('inner', 3)]];
        $list[0] = new Callback(static function () use (&$list): int {
            $list = null;

            return 7;
        });

        self::assertSame('[7,"texttexttext",["innerinnerinner"]]', $this->sent([&$list]));
    }

    public function testAnInnerListThatIsReleasedBehindAReferenceIsSentAsItWas(): void
    {
        $inner = [null, str_repeat('text', 3)];
        $inner[0] = new Callback(static function () use (&$inner): int {
            $inner = [];

            return 7;
        });

        self::assertSame('[[7,"texttexttext"],1]', $this->sent([[&$inner, 1]]));
    }

    public function testTheKeysOfAnArrayOfTextsMayBeAnyBytes(): void
    {
        $endpoint = MetricsEndpoint::open('127.0.0.1:0');
        $endpoint->update(true, false, ["\xFF" => 'database', 'queue']);

        $ready = file_get_contents("http://{$endpoint->address()}/ready", context: stream_context_create(['http' => ['ignore_errors' => true]]));

        self::assertStringContainsString('database', $ready);
        self::assertStringContainsString('queue', $ready);
    }

    public function testAListWithGapsThatIsReleasedBehindAReferenceIsSentAsItWas(): void
    {
        // Not packed any more: PHP keeps it with keys.
        $list = ['key' => 0, 0 => null, 1 => str_repeat('text', 3)];
        unset($list['key']);
        $list[0] = new Callback(static function () use (&$list): int {
            $list = null;

            return 7;
        });

        self::assertSame('[7,"texttexttext"]', $this->sent([&$list]));
    }

    public function testAMapThatIsReleasedWhileItIsEncodedIsSentAsItWas(): void
    {
        $map = ['first' => null, 'second' => str_repeat('text', 3)];
        $map['first'] = new Callback(static function () use (&$map): int {
            $map = null;

            return 7;
        });

        self::assertSame('{"first":7,"second":"texttexttext"}', $this->sent([&$map]));
    }

    public function testAnObjectThatReleasesItselfIsSentAsItWas(): void
    {
        $object = new Callback(static function () use (&$object): string {
            $object = null;
            gc_collect_cycles();

            return str_repeat('text', 3);
        });

        self::assertSame('"texttexttext"', $this->sent([&$object]));
    }

    public function testTextThatChangesBehindAReferenceIsSentAsItIsWhenItsTurnComes(): void
    {
        $before = $after = str_repeat('old', 3);
        $change = new Callback(static function () use (&$before, &$after): int {
            $before .= str_repeat('new', 10_000);
            $after = str_repeat('new', 3);

            return 7;
        });

        $row = $this->database->execute('SELECT ?, ?, ?', [&$before, $change, &$after])->rows()[0];

        self::assertSame(['oldoldold', 'newnewnew'], [array_values($row)[0], array_values($row)[2]]);
    }

    public function testNamedParametersMayReleaseEachOther(): void
    {
        $second = new Callback(static fn(): int => 2);
        $first = new Callback(static function () use (&$first, &$second): int {
            $first = $second = null;

            return 1;
        });

        $row = $this->database->execute('SELECT :first AS first, :second AS second', ['first' => &$first, 'second' => &$second])->rows()[0];

        self::assertSame(['first' => '1', 'second' => null], $row);
    }

    public function testAnExceptionOfACallbackIsThrown(): void
    {
        $list = [null, 1];
        $list[0] = new Callback(static function () use (&$list): never {
            $list = null;
            throw new \DomainException('on purpose');
        });

        try {
            $this->database->execute('SELECT ?', [&$list]);
            self::fail('Nothing was thrown');
        } catch (\DomainException $thrown) {
            self::assertSame('on purpose', $thrown->getMessage());
        }
        self::assertSame('1', $this->sent([1]));
    }

    public function testAnExceptionOfAnErrorHandlerIsThrown(): void
    {
        set_error_handler(static fn(int $code, string $message) => throw new \DomainException($message));
        try {
            $this->database->execute('SELECT ?', [new Callback(static fn(): string => "{$undefined}")]);
            self::fail('Nothing was thrown');
        } catch (\DomainException $thrown) {
            self::assertStringContainsString('undefined', $thrown->getMessage());
        } finally {
            restore_error_handler();
        }
    }

    public function testACallbackMayUseTheSameDatabase(): void
    {
        $inner = new Callback(fn(): string => $this->sent([5]));
        $outer = new Callback(fn(): string => $this->sent([$inner]));

        self::assertSame('"\"5\""', $this->sent([$outer]));
    }

    public function testACallbackMayUseTheSameTransactionInATask(): void
    {
        $rows = run(fn(): array => $this->database->transaction(static function ($transaction): array {
            $nested = new Callback(static fn(): int => (int) $transaction->execute('SELECT 4 AS four')->value());

            return $transaction->execute('SELECT ? AS nested', [$nested])->rows();
        }));

        self::assertSame([['nested' => '4']], $rows);
    }

    public function testAFiberThatIsDestroyedInACallbackReleasesEverything(): void
    {
        $weak = null;
        $fiber = new \Fiber(function () use (&$weak): void {
            $list = [new Callback(static fn(): mixed => \Fiber::suspend()), 1];
            $weak = \WeakReference::create($list[0]);
            $this->database->execute('SELECT ?', [&$list]);
        });
        $fiber->start();
        self::assertNotNull($weak->get());

        unset($fiber);
        gc_collect_cycles();

        self::assertNull($weak->get());
        self::assertSame('1', $this->sent([1]));
    }

    public function testAnAutoloaderOfTheExceptionMayUseTheSameDatabase(): void
    {
        $program = Subprocess::run(<<<'PHP'
            $database = Weft\Sql\Database::connect('sqlite::memory:');
            spl_autoload_register(static function (string $class) use ($database): void {
                echo $class === Weft\Sql\InvalidParameterException::class ? $database->execute("SELECT 'nested'")->value() : '', "\n";
            }, prepend: true);
            try {
                $database->execute('SELECT ?', [1, 2]);
            } catch (Weft\Sql\InvalidParameterException) {
                echo 'refused';
            }
            PHP);

        self::assertSame(0, $program->exitCode, $program->errors);
        self::assertStringContainsString('nested', $program->output);
        self::assertStringEndsWith('refused', $program->output);
    }

    public function testALabelThatIsAnObjectIsRefusedAndNotCalled(): void
    {
        $label = new Callback(static function () use (&$label): string {
            $label = null;

            return 'called';
        });

        $this->expectExceptionMessage('the value of "name" must be a string');
        addToCounter('weft_memory_test_total', 'Never counted.', ['name' => &$label], 1);
    }

    public function testAResourceInAListIsRefused(): void
    {
        $this->expectException(InvalidParameterException::class);
        $this->database->execute('SELECT ?', [[1, [STDIN]]]);
    }

    /**
     * What the database is sent for one parameter, as text.
     *
     * @param array{mixed} $parameters
     */
    private function sent(array $parameters): string
    {
        return (string) $this->database->execute('SELECT CAST(? AS TEXT) AS value', $parameters)->value();
    }
}
