<?php

declare(strict_types=1);

namespace Weft\Tests\EventSourcing;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\EventSourcing\EventStore;
use Weft\EventSourcing\RecordedEvent;
use Weft\EventSourcing\StreamConflictException;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\EventSourcing\Fixtures\Deposited;
use Weft\Tests\EventSourcing\Fixtures\Noted;

use function Weft\all;
use function Weft\async;
use function Weft\delay;

/** Readers of all events: nothing skipped, nothing twice, whatever order transactions commit in. */
final class ReadingTest extends EventSourcingTestCase
{
    private const WRITERS = 200;
    private const EACH = 5;

    public function testTheFirstUseInSqliteMayBeInATransactionThatHasRead(): void
    {
        $this->inRuntime(static function (): void {
            $database = Database::connect('sqlite::memory:?transaction_timeout=2');
            $store = new EventStore($database, Noted::class);
            $database->transaction(static function (Transaction $transaction) use ($store): void {
                $transaction->execute('SELECT 1')->value();
                $store->append($transaction, 'a', 0, [new Noted('first')]);
            });

            self::assertSame(['first'], self::contents($store->read()));
        });
    }

    public function testInPostgreSqlAnEventThatCommitsLateHoldsBackWhatHasALargerPosition(): void
    {
        $this->inRuntime(function (): void {
            $store = $this->store('postgres');
            $database = $this->database('postgres');
            self::write($store, $database, 'a', [new Noted('first')]);
            $late = $database->begin();
            $store->append($late, 'late', 0, [new Noted('second, late')]);
            self::write($store, $database, 'b', [new Noted('third')]);
            self::write($store, $database, 'c', [new Noted('fourth')]);

            self::assertSame(['first'], self::contents($store->read()));
            self::assertSame([], $store->read(after: 1));
            $late->commit();
            self::assertSame(['first', 'second, late', 'third', 'fourth'], self::contents($store->read()));
            self::assertSame(['second, late'], self::contents($store->read(after: 1, limit: 1)));

            $undone = $database->begin();
            $store->append($undone, 'undone', 0, [new Noted('never'), new Noted('never')]);
            self::write($store, $database, 'd', [new Noted('seventh')]);
            self::assertSame([], $store->read(after: 4));
            $undone->rollback();
            self::assertSame(['seventh'], self::contents($store->read(after: 4)));

            $other = $this->store('postgres');
            self::assertSame(['first', 'second, late', 'third', 'fourth'], self::contents($other->read()), 'a reader that sees the gap for the first time');
            self::assertSame(['seventh'], self::contents($other->read(after: 4)));
        });
    }

    public function testInPostgreSqlAnEventOfAYoungerTransactionThatCommitsLastIsNotSkipped(): void
    {
        $this->inRuntime(function (): void {
            $store = $this->store('postgres');
            $database = $this->database('postgres');
            self::assertSame([], $store->read());
            $older = $database->begin();
            $older->execute('SELECT pg_current_xact_id()')->value();
            $younger = $database->begin();
            $store->append($younger, 'younger', 0, [new Noted('first')]);
            $store->append($older, 'older', 0, [new Noted('second')]);
            $older->commit();

            self::assertSame([], $store->read(), 'no transaction has ended that is younger than the one with the first position');
            self::assertSame([], $store->read());
            $younger->commit();
            self::assertSame(['first', 'second'], self::contents($store->read()));
        });
    }

    public function testInPostgreSqlTransactionsWithoutEventsDoNotHoldBackReaders(): void
    {
        $this->inRuntime(function (): void {
            $store = $this->store('postgres');
            $database = $this->database('postgres');
            $maintenance = Database::connect((string) \preg_replace('~/[^/?]*(?=$|\?)~', '/postgres', $this->databaseDsn('postgres'), 1));
            $others = [$database->begin(), $maintenance->begin()];
            foreach ($others as $other) {
                $other->execute('SELECT pg_current_xact_id()')->value();
            }
            self::write($store, $database, 'a', [new Noted('first')]);
            $undone = $database->begin();
            $store->append($undone, 'undone', 0, [new Noted('never')]);
            self::write($store, $database, 'b', [new Noted('third')]);
            self::assertSame(['first'], self::contents($store->read()));
            $undone->rollback();

            self::assertSame(['first', 'third'], self::contents($store->read()));
            self::assertSame(['third'], self::contents($this->store('postgres')->read(after: 1)), 'a reader that sees the gap for the first time');
            foreach ($others as $other) {
                $other->rollback();
            }
            $maintenance->close();
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAReaderGetsWhatManyWritersCommitOnceAndInOrderWhileTheyWrite(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->database($kind, size: 12);
            $store = $this->store($kind);
            self::assertSame([], $store->read());
            $reader = $this->store($kind, size: 2);
            $read = [];
            $done = false;
            $reading = async(static function () use ($reader, &$read, &$done): void {
                do {
                    $last = $done;
                    while (($events = $reader->read($read === [] ? 0 : $read[\count($read) - 1]->position, limit: 17)) !== []) {
                        \array_push($read, ...$events);
                    }
                    delay(0.002);
                } while (!$last);
            });
            $committed = new \ArrayObject();
            \mt_srand(1);
            all(\array_map(static fn(int $writer): \Closure => static function () use ($store, $database, $writer, $committed): void {
                for ($i = 0; $i < self::EACH; $i++) {
                    $undo = \mt_rand(0, 4) === 0;
                    try {
                        $database->transaction(static function (Transaction $transaction) use ($store, $writer, $i, $undo): void {
                            $store->append($transaction, "stream {$writer}", 2 * $i, [new Deposited(10 * $writer + $i), new Deposited(-10 * $writer - $i)]);
                            delay(\mt_rand(0, 10) / 1000);
                            $undo && throw new \DomainException('undone');
                        });
                    } catch (\DomainException) {
                        // The stream has no version for what would come next.
                        break;
                    }
                    $committed[] = "stream {$writer} " . (2 * $i + 1);
                    $committed[] = "stream {$writer} " . (2 * $i + 2);
                }
            }, \range(1, self::WRITERS)));
            $done = true;
            $reading->await();

            $seen = \array_map(static fn(RecordedEvent $event): string => "{$event->stream} {$event->version}", $read);
            self::assertSame(\count($seen), \count(\array_unique($seen)), 'none twice');
            self::assertEqualsCanonicalizing($committed->getArrayCopy(), $seen, 'none skipped');
            $positions = \array_column($read, 'position');
            $sorted = $positions;
            \sort($sorted);
            self::assertSame($sorted, $positions);
            $versions = [];
            foreach ($read as $event) {
                self::assertSame(($versions[$event->stream] ?? 0) + 1, $versions[$event->stream] = $event->version, "order within {$event->stream}");
            }
            self::assertGreaterThan(self::WRITERS, \count($seen));
        }, deadline: 120.0);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAProjectionIsGivenEachEventOnceHoweverManyProcessesCatchUpAndFail(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->database($kind);
            $store = $this->store($kind);
            $database->execute('CREATE TABLE seen (position BIGINT, amount BIGINT)');
            for ($i = 1; $i <= 60; $i++) {
                self::write($store, $database, "s{$i}", [new Deposited($i)]);
            }
            $failures = 6;
            $apply = static function (RecordedEvent $event, Transaction $transaction) use (&$failures): void {
                \assert($event->event instanceof Deposited);
                $transaction->execute('INSERT INTO seen (position, amount) VALUES (?, ?)', [$event->position, $event->event->amount]);
                if ($event->event->amount % 9 === 0 && $failures-- > 0) {
                    throw new \DomainException('this time it fails');
                }
            };
            $counts = all(\array_map(fn(int $i): \Closure => function () use ($kind, $apply): int {
                $store = $this->store($kind, size: 2);
                $count = 0;
                while (true) {
                    try {
                        return $count + $store->catchUp('sums', $apply, batch: 7);
                    } catch (\DomainException | \Weft\Sql\TransactionAbortedException) {
                    }
                }
            }, \range(1, 3)));

            self::assertSame(\range(1, 60), $database->execute('SELECT amount FROM seen ORDER BY position')->column());
            self::assertSame(0, $store->catchUp('sums', $apply));
            self::assertLessThanOrEqual(60, \array_sum($counts));
            $store->reset('sums');
            self::assertSame(60, $store->catchUp('sums', static fn() => null));
            self::assertSame(60, $store->catchUp('another', static fn() => null));
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAFollowerReceivesLaterEvents(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $store = $this->store($kind);
            $heard = new \ArrayObject();
            $follower = async(static fn() => $store->follow('heard', static function (RecordedEvent $event) use ($heard): void {
                $heard[] = $event->position;
            }, interval: 0.01));
            self::write($store, $this->database($kind), 'a', [new Noted('one'), new Noted('two')]);
            while (\count($heard) < 2) {
                delay(0.005);
            }
            $follower->cancel();
            self::assertSame([1, 2], $heard->getArrayCopy());
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAStreamThatHasAnotherVersionThanExpectedIsAConflict(string $kind): void
    {
        $store = $this->store($kind);
        $database = $this->database($kind);
        self::assertSame(2, self::write($store, $database, 'a', [new Noted('1'), new Noted('2')]));
        self::assertSame(2, self::write($store, $database, 'a', [], 2));
        foreach ([0, 1] as $expected) {
            try {
                self::write($store, $database, 'a', [new Noted('3')], $expected);
                self::fail('appended');
            } catch (StreamConflictException) {
            }
        }
        self::assertSame(3, self::write($store, $database, 'a', [new Noted('3')], 2));
        self::assertSame(['1', '2', '3'], self::contents($store->stream('a')));
        $this->expectException(\ValueError::class);
        self::write($store, $database, '', [new Noted('1')]);
    }

    private static function write(EventStore $store, \Weft\Sql\Database $database, string $stream, array $events, int $expected = 0): int
    {
        return $database->transaction(static fn(Transaction $transaction): int => $store->append($transaction, $stream, $expected, $events));
    }
}
