<?php

declare(strict_types=1);

namespace Weft\Tests\EventSourcing;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\EventSourcing\AggregateClosed;
use Weft\EventSourcing\AggregateClosedException;
use Weft\EventSourcing\AggregateNotFoundException;
use Weft\EventSourcing\Aggregates;
use Weft\EventSourcing\EventErased;
use Weft\EventSourcing\RecordedEvent;
use Weft\EventSourcing\StreamConflictException;
use Weft\EventSourcing\StreamErased;
use Weft\EventSourcing\UniqueIndex;
use Weft\EventSourcing\ValueTakenException;
use Weft\Runtime\Task;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\EventSourcing\Fixtures\Account;
use Weft\Tests\EventSourcing\Fixtures\Deposited;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\detach;

/** The end of streams and aggregates: erased for privacy, closed, and their unique values changed and freed. */
final class ErasureTest extends EventSourcingTestCase
{
    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnErasedStreamKeepsItsVersionsAndNothingOfItsContents(string $kind): void
    {
        $store = $this->store($kind);
        $database = $this->database($kind);
        $this->account($database, new Aggregates($store, Account::class), '1', 'Zoë Secret', 12);
        $this->account($database, new Aggregates($store, Account::class), '2', 'Ada', 1);
        $before = \array_column($store->read(), 'position');

        self::assertSame(13, $database->transaction(static fn(Transaction $transaction): int => $store->erase($transaction, 'account:1', 'asked for by its owner')));

        $events = $store->stream('account:1');
        self::assertSame(\range(1, 14), \array_column($events, 'version'));
        self::assertEquals(new EventErased('account.opened'), $events[0]->event);
        self::assertEquals(new EventErased('account.deposited'), $events[12]->event);
        self::assertSame([], $events[0]->headers);
        self::assertEquals(new StreamErased('account:1', 'asked for by its owner'), $events[13]->event);
        $rows = [...$database->execute('SELECT * FROM weft_events WHERE stream = ?', ['account:1'])->rows(), ...$database->execute('SELECT * FROM weft_snapshots WHERE stream = ?', ['account:1'])->rows()];
        self::assertStringNotContainsString('Secret', (string) \json_encode($rows));
        self::assertCount(14, $rows, 'the snapshot is gone');
        self::assertSame($before, \array_slice(\array_column($store->read(), 'position'), 0, \count($before)), 'readers find every event where it was');
        self::assertEquals(new Deposited(1), $store->stream('account:2')[1]->event);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAProjectionLearnsOfAnErasureAndAnErasedAggregateIsNotFound(string $kind): void
    {
        $store = $this->store($kind);
        $database = $this->database($kind);
        $accounts = new Aggregates($store, Account::class);
        $this->account($database, $accounts, '1', 'Zoë', 2);
        $known = [];
        $project = static function (RecordedEvent $recorded) use (&$known): void {
            if ($recorded->event instanceof StreamErased) {
                unset($known[$recorded->event->stream]);
            } elseif (!$recorded->event instanceof EventErased) {
                $known[$recorded->stream][] = $recorded->event::class;
            }
        };
        $store->catchUp('accounts', $project);
        self::assertCount(3, $known['account:1']);

        $erase = static fn(): int => $database->transaction(static fn(Transaction $transaction): int => $store->erase($transaction, 'account:1'));
        self::assertSame([3, 0], [$erase(), $erase()], 'nothing is left to be erased');
        self::assertSame(1, $store->catchUp('accounts', $project));
        self::assertSame([], $known);
        $store->reset('accounts');
        self::assertSame(4, $store->catchUp('accounts', $project), 'a projection that starts again reads tombstones');
        self::assertSame([], $known);

        try {
            $database->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, Account::open('1', 'again')));
            self::fail('the id is used up');
        } catch (StreamConflictException) {
        }
        $this->expectException(AggregateNotFoundException::class);
        $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1'));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnErasureIsRolledBackWithItsTransactionAndConflictsWithAConcurrentEvent(string $kind): void
    {
        $store = $this->store($kind);
        $database = $this->database($kind);
        $accounts = new Aggregates($store, Account::class);
        $this->account($database, $accounts, '1', 'Zoë', 1);
        try {
            $database->transaction(static function (Transaction $transaction) use ($store): void {
                $store->erase($transaction, 'account:1');
                throw new \DomainException('no');
            });
        } catch (\DomainException) {
        }
        self::assertEquals(new Deposited(1), $store->stream('account:1')[1]->event);
        self::assertSame(0, $database->transaction(static fn(Transaction $transaction): int => $store->erase($transaction, 'account:9')));
        self::assertSame([], $store->stream('account:9'));
    }

    public function testInMariaDbAnErasureAndAnAppendThatWaitForAThirdTransactionDoNotWaitForEachOther(): void
    {
        $this->inRuntime(function (): void {
            $store = $this->store('mariadb');
            $database = $this->database('mariadb');
            $append = static fn(string $stream, int $expected): int => $database->transaction(static fn(Transaction $transaction): int => $store->append($transaction, $stream, $expected, [new Deposited(1)]));
            $append('till', 0);
            $third = $database->begin();
            $store->append($third, 'other', 0, [new Deposited(1)]);
            $outcome = static function (\Closure $work): string {
                try {
                    $work();
                } catch (StreamConflictException) {
                    return 'conflict';
                }

                return 'done';
            };
            $appending = async(static fn(): string => $outcome(static fn(): int => $append('till', 1)));
            delay(0.2);
            $erasing = async(static fn(): string => $outcome(static fn(): int => $database->transaction(static fn(Transaction $transaction): int => $store->erase($transaction, 'till'))));
            delay(0.2);
            $third->commit();

            // The first that has the counter.
            self::assertEqualsCanonicalizing(['done', 'conflict'], [$appending->await(), $erasing->await()]);
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAClosedAggregateRecordsNothingMoreUntilItIsReverted(string $kind): void
    {
        $store = $this->store($kind);
        $database = $this->database($kind);
        $accounts = new Aggregates($store, Account::class);
        $this->account($database, $accounts, '1', 'Zoë', 8);
        $database->transaction(static function (Transaction $transaction) use ($accounts): void {
            $account = $accounts->load($transaction, '1');
            self::assertFalse($accounts->isClosed($account));
            // The tenth event, at which a snapshot would be stored.
            $account->end('moved');
            $accounts->save($transaction, $account);
        });
        self::assertEquals(new AggregateClosed('moved'), $store->stream('account:1')[9]->event);

        $account = $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1'));
        self::assertTrue($accounts->isClosed($account));
        self::assertSame('1: 36 EUR', (string) $account);
        try {
            $account->deposit(5);
            self::fail('it is closed');
        } catch (AggregateClosedException $closed) {
            self::assertStringContainsString('is closed and cannot record', $closed->getMessage());
            self::assertSame(36, $account->balance, 'the event was not applied');
        }

        $database->transaction(static function (Transaction $transaction) use ($accounts): void {
            $accounts->revert($transaction, '1', 9);
            $account = $accounts->load($transaction, '1');
            self::assertFalse($accounts->isClosed($account));
            $account->deposit(4);
            $accounts->save($transaction, $account);
        });
        self::assertSame('1: 40 EUR', (string) $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1')));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAUniqueValueIsChangedInOneStepAndAllOfAnOwnerAreFreed(string $kind): void
    {
        $database = $this->database($kind);
        $emails = new UniqueIndex($this->store($kind), 'email');
        $database->transaction(static function (Transaction $transaction) use ($emails): void {
            $emails->claim($transaction, 'old@example.org', '1');
            $emails->claim($transaction, 'taken@example.org', '2');
            $emails->change($transaction, 'old@example.org', 'new@example.org', '1');
            foreach ([['new@example.org', 'taken@example.org', '1'], ['old@example.org', 'free@example.org', '1']] as [$from, $to, $owner]) {
                try {
                    $emails->change($transaction, $from, $to, $owner);
                    self::fail('changed');
                } catch (ValueTakenException) {
                }
            }
        });
        self::assertSame([null, '1', '2'], \array_map(static fn(string $value): ?string => $emails->owner($database, $value), ['old@example.org', 'new@example.org', 'taken@example.org']));

        self::assertSame([1, 0], [$emails->releaseAll($database, '1'), $emails->releaseAll($database, '1')]);
        self::assertNull($emails->owner($database, 'new@example.org'));
        self::assertSame('2', $emails->owner($database, 'taken@example.org'));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testOfTwoConcurrentChangesOfAUniqueValueOneFindsThatItsOwnerNoLongerHasIt(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->database($kind);
            $emails = new UniqueIndex($this->store($kind), 'email');
            $database->transaction(static fn(Transaction $transaction) => $emails->claim($transaction, 'old@example.org', '1'));

            $changed = \array_filter(all(\array_map(static fn(string $to): \Closure => static fn(): ?string => $database->transaction(static function (Transaction $transaction) use ($emails, $to): ?string {
                try {
                    $emails->change($transaction, 'old@example.org', $to, '1');
                } catch (ValueTakenException $taken) {
                    self::assertStringContainsString('"1" does not have "old@example.org"', $taken->getMessage());

                    return null;
                }
                delay(0.2);

                return $to;
            }), ['one@example.org', 'two@example.org'])));

            self::assertCount(1, $changed);
            self::assertSame(\array_values($changed), $database->execute('SELECT value FROM weft_unique_values')->column());
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAUniqueValueThatItsOwnerClaimsAgainIsNotReleasedBeforeTheTransactionEnds(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->database($kind);
            $emails = new UniqueIndex($this->store($kind), 'email');
            $claim = static fn(Transaction $transaction) => $emails->claim($transaction, 'zoe@example.org', '1');
            $database->transaction($claim);
            $release = $database->transaction(static function (Transaction $transaction) use ($claim, $emails, $database): Task {
                $claim($transaction);
                $release = detach(static fn(): bool => $emails->release($database, 'zoe@example.org', '1'));
                delay(0.2);
                self::assertFalse($release->isDone());

                return $release;
            });

            self::assertTrue($release->await());
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnOwnerWithATooLongNameIsRefused(string $kind): void
    {
        $database = $this->database($kind);
        $emails = new UniqueIndex($this->store($kind), 'email');
        $longest = \str_repeat('ö', 100);
        $database->transaction(static fn(Transaction $transaction) => $emails->claim($transaction, 'zoe@example.org', $longest));
        self::assertTrue($emails->release($database, 'zoe@example.org', $longest));

        $database->transaction(static function (Transaction $transaction) use ($emails, $longest): void {
            $emails->claim($transaction, 'zoe@example.org', '1');
            foreach ([static fn() => $emails->claim($transaction, 'ada@example.org', "{$longest}o"), static fn() => $emails->change($transaction, 'zoe@example.org', 'ada@example.org', "{$longest}o")] as $claim) {
                try {
                    $claim();
                    self::fail('claimed');
                } catch (\ValueError $refused) {
                    self::assertSame('The owner of a unique value must have 1 to 200 bytes of UTF-8 without NUL, got "' . "{$longest}o" . '" of 201', $refused->getMessage());
                }
            }
        });
        self::assertSame(['zoe@example.org'], $database->execute('SELECT value FROM weft_unique_values')->column());
    }

    /** @param Aggregates<Account> $accounts */
    private function account(Database $database, Aggregates $accounts, string $id, string $owner, int $deposits): void
    {
        $database->transaction(static function (Transaction $transaction) use ($accounts, $id, $owner, $deposits): void {
            $account = Account::open($id, $owner);
            for ($amount = 1; $amount <= $deposits; $amount++) {
                $account->deposit($amount);
            }
            $accounts->save($transaction, $account);
        });
    }
}
