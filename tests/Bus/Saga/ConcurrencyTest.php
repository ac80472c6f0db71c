<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Saga;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\EventListener;
use Weft\Bus\Transport\Memory;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\BusTestCase;
use Weft\Tests\Bus\Saga\Fixtures\Step;
use Weft\Tests\Bus\Saga\Fixtures\Stepped;
use Weft\Tests\Bus\Saga\Fixtures\Walk;
use Weft\Tests\Sql\Support\Databases;

use function Weft\all;
use function Weft\delay;

require_once __DIR__ . '/Fixtures/steps.php';

/** Many messages for few sagas at the same time, from several workers that know nothing of each other. */
final class ConcurrencyTest extends BusTestCase
{
    use Databases;

    private const EVENTS = 1_000;
    private const SAGAS = 10;
    private const WORKERS = 3;

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAThousandConcurrentEventsOnTenSagasGiveTheStateOfASequentialModel(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $broker = new Memory();
            $database = $this->databaseForSteps($kind);
            $buses = \array_map(fn(): Bus => Bus::connect($broker, $this->database($kind, size: 8))->handlers(Walk::class, self::hearing()), \range(1, self::WORKERS));
            $buses[0]->queue(self::QUEUE)->declare();
            $numbers = \range(1, self::EVENTS);
            \mt_srand(7);
            \shuffle($numbers);
            foreach ($numbers as $number) {
                $buses[0]->publish(new Step('walk ' . $number % self::SAGAS, $number));
            }
            all(\array_map(static fn(Bus $bus): \Closure => static function () use ($bus, $database): void {
                // What waits for a later try is in nobody's queue meanwhile.
                do {
                    $bus->consume(self::QUEUE, concurrency: 30, options: new ConsumeOptions(stopWhenEmpty: true, signals: false));
                } while (\count(self::heard($database)) < self::EVENTS && $bus->queue(self::QUEUE)->deadLetters()->count() === 0);
            }, $buses));

            $letters = $buses[0]->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([], \array_map(static fn($letter): string => $letter->errorClass() . ': ' . $letter->errorMessage(), $letters));
            $heard = self::heard($database);
            for ($walk = 0; $walk < self::SAGAS; $walk++) {
                $this->assertSequential($buses[0], "walk {$walk}", $heard, \range($walk === 0 ? self::SAGAS : $walk, self::EVENTS, self::SAGAS));
            }
        }, deadline: 240.0);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testInsideOneProcessMessagesForOneSagaTakeTurnsSoThatNoneIsHandledTwice(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->databaseForSteps($kind);
            $bus = Bus::connect(new Memory(), $database)->handlers(Walk::class, self::hearing());
            $bus->queue(self::QUEUE)->declare();
            for ($number = 1; $number <= 100; $number++) {
                $bus->publish(new Step('walk ' . $number % 2, $number));
            }
            Walk::$calls = 0;
            $bus->consume(self::QUEUE, concurrency: 20, options: new ConsumeOptions(stopWhenEmpty: true, signals: false));

            self::assertSame([100, 100], [Walk::$calls, \count(self::heard($database))]);
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAMethodThatWasOvertakenIsCalledAgainOnTheNewState(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $broker = new Memory();
            $database = $this->databaseForSteps($kind);
            $bus = Bus::connect($broker, $database)->handlers(Walk::class, self::hearing());
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new Step('a', 1));
            $bus->consume(self::QUEUE, options: new ConsumeOptions(stopWhenEmpty: true, signals: false));
            $row = $database->begin();
            $row->execute("UPDATE weft_sagas SET version = version + 1, state = ? WHERE id = 'a'", ['{"count":41,"chain":""}'])->affected();
            $bus->publish(new Step('a', 2));
            all([
                static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(stopWhenEmpty: true, signals: false)),
                static function () use ($row): void {
                    delay(0.1);
                    $row->commit();
                },
            ]);

            self::assertSame([1, 42], \array_column(self::heard($database), 'count'));
            self::assertSame(0, $bus->admin()->stats()->failed);
        });
    }

    /**
     * @param list<Stepped> $heard
     * @param list<int>     $numbers
     */
    private function assertSequential(Bus $bus, string $walk, array $heard, array $numbers): void
    {
        $steps = \array_values(\array_filter($heard, static fn(Stepped $step): bool => $step->walk === $walk));
        self::assertSame(\range(1, \count($numbers)), \array_column($steps, 'count'), "each event has changed {$walk} once");
        self::assertEqualsCanonicalizing($numbers, \array_column($steps, 'number'));
        $model = '';
        foreach ($steps as $step) {
            $model = \sha1("{$model} {$step->number}");
            self::assertSame($model, $step->chain);
        }
        $state = $bus->admin()->sagas()->state(Walk::class, $walk);
        \assert($state instanceof Walk);
        self::assertSame([\count($numbers), $model], [$state->count, $state->chain]);
    }

    private function databaseForSteps(string $kind): Database
    {
        $database = $this->database($kind);
        $database->execute('CREATE TABLE steps (walk varchar(20), count integer, number integer, chain varchar(40))');

        return $database;
    }

    /** Remembers in the transaction of the message: on a busy machine a lock may not come in time, and then the message is handled again. */
    private static function hearing(): object
    {
        return new class () {
            #[EventListener]
            public function stepped(Stepped $event, Transaction $transaction): void
            {
                $transaction->execute('INSERT INTO steps VALUES (?, ?, ?, ?)', [$event->walk, $event->count, $event->number, $event->chain]);
            }
        };
    }

    /** @return list<Stepped> in the order of the steps of each walk */
    private static function heard(Database $database): array
    {
        $rows = $database->execute('SELECT walk, count, number, chain FROM steps ORDER BY walk, count')->rows();

        return \array_map(static fn(array $row): Stepped => new Stepped($row['walk'], $row['count'], $row['number'], $row['chain']), $rows);
    }
}
