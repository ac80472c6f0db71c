<?php

declare(strict_types=1);

namespace Weft\Tests\EventSourcing;

use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Log\NullLogger;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\Encrypted;
use Weft\Bus\EventListener;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\InvalidUpcasterException;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Upcaster;
use Weft\EventSourcing\AggregateNotFoundException;
use Weft\EventSourcing\AggregateRoot;
use Weft\EventSourcing\Aggregates;
use Weft\EventSourcing\Applies;
use Weft\EventSourcing\EventStore;
use Weft\EventSourcing\InvalidEventException;
use Weft\EventSourcing\InvalidAggregateError;
use Weft\EventSourcing\StreamConflictException;
use Weft\EventSourcing\StreamReverted;
use Weft\EventSourcing\UniqueIndex;
use Weft\EventSourcing\UnknownEventException;
use Weft\EventSourcing\ValueTakenException;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;
use Weft\Tests\EventSourcing\Fixtures\Account;
use Weft\Tests\EventSourcing\Fixtures\AccountOpened;
use Weft\Tests\EventSourcing\Fixtures\Deposited;

use function Weft\all;
use function Weft\async;
use function Weft\delay;

final class AggregatesTest extends EventSourcingTestCase
{
    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnAggregateIsWhatItsEventsHaveMadeOfIt(string $kind): void
    {
        $accounts = new Aggregates($this->store($kind), Account::class);
        $database = $this->database($kind);
        $database->transaction(function (Transaction $transaction) use ($accounts): void {
            $account = Account::open('1', 'Zoë');
            $account->deposit(10);
            $accounts->save($transaction, $account);
            $account->deposit(5);
            $accounts->save($transaction, $account);
            $accounts->save($transaction, $account);
        });
        $database->transaction(function (Transaction $transaction) use ($accounts): void {
            $account = $accounts->load($transaction, '1');
            $account->note('nothing changes');
            $accounts->save($transaction, $account);
        });

        self::assertSame('1: 15 EUR', (string) $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1')));
        $events = $this->store($kind)->stream('account:1');
        self::assertSame([1, 2, 3, 4], \array_column($events, 'version'));
        self::assertEquals([new AccountOpened('1', 'Zoë', 'EUR'), new Deposited(10), new Deposited(5)], \array_slice(\array_column($events, 'event'), 0, 3));
        self::assertSame(['nothing changes'], self::contents($this->store($kind)->stream('account:1', after: 3)));
        self::assertNull($database->transaction(static fn(Transaction $transaction): ?Account => $accounts->find($transaction, '2')));
        $this->expectException(AggregateNotFoundException::class);
        $this->expectExceptionMessage('Account "2"');
        $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '2'));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testOneOfTwoSavesOfTheSameVersionConflictsAndStoresNothing(string $kind): void
    {
        $accounts = new Aggregates($this->store($kind), Account::class);
        $database = $this->database($kind);
        $database->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, Account::open('1', 'Zoë')));
        [$one, $other] = \array_map(static fn() => $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1')), [0, 1]);
        $one->deposit(1);
        $other->deposit(2);
        $other->deposit(3);
        $database->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, $one));
        try {
            $database->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, $other));
            self::fail('saved');
        } catch (StreamConflictException $conflict) {
            self::assertStringContainsString('"account:1" has newer events than version 1', $conflict->getMessage());
        }
        self::assertSame([AccountOpened::class, 1], self::contents($this->store($kind)->stream('account:1')));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnAppendToAVersionThatTheStreamDoesNotHaveConflictsAndStoresNothing(string $kind): void
    {
        $store = $this->store($kind);
        $database = $this->database($kind);
        $append = static fn(int $expected): int => $database->transaction(static fn(Transaction $transaction): int => $store->append($transaction, 'till', $expected, [new Deposited(1), new Deposited(2)]));
        self::assertSame(2, $append(0));
        foreach ([0 => 'has newer events than version 0', 1 => 'has newer events than version 1', 3 => 'has no version 3', 5_000_000_000 => 'has no version 5000000000'] as $expected => $why) {
            try {
                $append($expected);
                self::fail("appended after version {$expected}");
            } catch (StreamConflictException $conflict) {
                self::assertStringContainsString("\"till\" {$why}", $conflict->getMessage());
            }
        }
        self::assertSame(4, $append(2));
        self::assertSame([1, 2, 3, 4], \array_column($store->stream('till'), 'version'));
    }

    /** @dataProvider rollbacks */
    #[DataProvider('rollbacks')]
    public function testEventsWhoseTransactionWasNotCommittedAreStoredByTheNextSave(string $kind, \Closure $failing): void
    {
        $store = $this->store($kind);
        $accounts = new Aggregates($store, Account::class);
        $database = $this->database($kind);
        $account = Account::open('1', 'Zoë');
        $database->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, $account));
        $account->deposit(1);
        $failing($database, static function (Transaction $transaction) use ($accounts, $account): void {
            $accounts->save($transaction, $account);
            $account->deposit(2);
            $accounts->save($transaction, $account);
        });
        $account->deposit(3);
        $database->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, $account));
        $account->deposit(4);
        $database->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, $account));

        self::assertSame([AccountOpened::class, 1, 2, 3, 4], self::contents($store->stream('account:1')));
        self::assertSame([1, 2, 3, 4, 5], \array_column($store->stream('account:1'), 'version'));
    }

    /** @return iterable<string, array{string, \Closure(Database, \Closure(Transaction): void): void}> */
    public static function rollbacks(): iterable
    {
        $ways = [
            'its closure throws' => static function (Database $database, \Closure $save): void {
                try {
                    $database->transaction(static function (Transaction $transaction) use ($save): void {
                        $save($transaction);
                        throw new \DomainException('no');
                    });
                } catch (\DomainException) {
                }
            },
            'its closure rolls back' => static fn(Database $database, \Closure $save) => $database->transaction(static function (Transaction $transaction) use ($save): void {
                $save($transaction);
                $transaction->rollback();
            }),
            'a statement fails at the commit' => static function (Database $database, \Closure $save): void {
                try {
                    $database->transaction(static function (Transaction $transaction) use ($save): void {
                        $save($transaction);
                        $transaction->execute('INSERT INTO nowhere VALUES (1)');
                    });
                } catch (SqlException) {
                }
            },
            'it is dropped' => static fn(Database $database, \Closure $save) => $save($database->begin()),
            'its savepoint is rolled back' => static fn(Database $database, \Closure $save) => $database->transaction(static function (Transaction $transaction) use ($save): void {
                try {
                    $transaction->transaction(static function (Transaction $transaction) use ($save): void {
                        $save($transaction);
                        throw new \DomainException('no');
                    });
                } catch (\DomainException) {
                }
            }),
            'a savepoint around its released savepoint is rolled back' => static fn(Database $database, \Closure $save) => $database->transaction(static function (Transaction $transaction) use ($save): void {
                try {
                    $transaction->transaction(static function (Transaction $transaction) use ($save): void {
                        $transaction->transaction($save);
                        throw new \DomainException('no');
                    });
                } catch (\DomainException) {
                }
            }),
            'it is rolled back after its savepoint was released' => static function (Database $database, \Closure $save): void {
                $transaction = $database->begin();
                $transaction->transaction($save);
                $transaction->rollback();
            },
        ];
        foreach (self::databases() as $name => [$kind]) {
            foreach ($ways as $way => $failing) {
                yield "{$name}: {$way}" => [$kind, $failing];
            }
        }
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testASavepointThatIsRolledBackTakesNothingBackThatWasSavedBeforeIt(string $kind): void
    {
        $store = $this->store($kind);
        $accounts = new Aggregates($store, Account::class);
        $account = Account::open('1', 'Zoë');
        $this->database($kind)->transaction(static function (Transaction $transaction) use ($accounts, $account): void {
            $accounts->save($transaction, $account);
            try {
                $transaction->transaction(static function (Transaction $transaction) use ($accounts, $account): void {
                    $account->deposit(1);
                    $accounts->save($transaction, $account);
                    throw new \DomainException('no');
                });
            } catch (\DomainException) {
            }
            $accounts->save($transaction, $account);
        });
        $account->deposit(2);
        $this->database($kind)->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, $account));

        self::assertSame([AccountOpened::class, 1, 2], self::contents($store->stream('account:1')));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testConcurrentDepositsThatAreTriedAgainAreAllThereOnce(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->database($kind);
            $accounts = new Aggregates($this->store($kind), Account::class);
            $database->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, Account::open('1', 'Zoë')));
            $conflicts = new \ArrayObject();
            all(\array_map(static fn(int $amount): \Closure => static function () use ($database, $accounts, $amount, $conflicts): void {
                do {
                    try {
                        $database->transaction(static function (Transaction $transaction) use ($accounts, $amount): void {
                            $account = $accounts->load($transaction, '1');
                            delay(0.001);
                            $account->deposit($amount);
                            $accounts->save($transaction, $account);
                        });
                        $again = false;
                    } catch (StreamConflictException | \Weft\Sql\TransactionAbortedException) {
                        $again = true;
                        $conflicts[] = $amount;
                    }
                } while ($again);
            }, \range(1, 30)));

            $account = $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1'));
            self::assertSame([30, 465], [$account->deposits, $account->balance]);
            $kind === 'sqlite' ? self::assertCount(0, $conflicts) : self::assertGreaterThan(0, \count($conflicts));
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testASnapshotSparesTheEventsBeforeIt(string $kind): void
    {
        $accounts = new Aggregates($this->store($kind), Account::class);
        $database = $this->database($kind);
        $database->transaction(static function (Transaction $transaction) use ($accounts): void {
            $account = Account::open('1', 'Zoë');
            foreach (\range(1, 23) as $amount) {
                $account->deposit($amount);
                $accounts->save($transaction, $account);
            }
        });
        Account::$applied = 0;
        $account = $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1'));
        self::assertSame([4, '1: 276 EUR'], [Account::$applied, (string) $account]);

        // A snapshot of another version of the class is as good as none.
        $database->execute('UPDATE weft_snapshots SET schema_version = 2');
        Account::$applied = 0;
        $account = $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1'));
        self::assertSame([24, '1: 276 EUR'], [Account::$applied, (string) $account]);

        $database->execute('UPDATE weft_snapshots SET schema_version = 1, state = ?', ['{"id":"1"}']);
        $this->expectException(InvalidEventException::class);
        $this->expectExceptionMessage('snapshot of stream "account:1"');
        $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1'));
    }

    /** @dataProvider changesOfSnapshots */
    #[DataProvider('changesOfSnapshots')]
    public function testASnapshotThatComesOrGoesWhileAnAggregateIsLoadedDoesNotMixWithOtherEvents(int $deposits, \Closure $change, string $expected): void
    {
        $this->inRuntime(function () use ($deposits, $change, $expected): void {
            $database = $this->database('postgres', 3);
            $accounts = new Aggregates($this->store('postgres'), Account::class);
            $database->transaction(static function (Transaction $transaction) use ($accounts, $deposits): void {
                $account = Account::open('1', 'Zoë');
                foreach (\range(1, $deposits) as $_) {
                    $account->deposit(1);
                    $accounts->save($transaction, $account);
                }
            });
            // Each connection has prepared the statements: to prepare them would wait for the lock.
            $warm = \array_map(static fn(): Transaction => $database->begin(), [0, 1, 2]);
            foreach ([...$warm, ...$warm] as $transaction) {
                $accounts->load($transaction, '1');
            }
            foreach ($warm as $transaction) {
                $transaction->commit();
            }
            $writer = $database->begin();
            $writer->execute('LOCK TABLE weft_events IN ACCESS EXCLUSIVE MODE');
            $writer->flush();
            $reader = async(static fn(): string => (string) $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1')));
            while ($database->execute("SELECT count(*) FROM pg_locks WHERE relation = 'weft_events'::regclass AND NOT granted")->value() === 0) {
                delay(0.005);
            }
            $change($writer, $accounts);
            $writer->commit();

            self::assertSame($expected, $reader->await());
        });
    }

    /** @return iterable<string, array{int, \Closure(Transaction, Aggregates<Account>): void, string}> */
    public static function changesOfSnapshots(): iterable
    {
        $deposit = static function (Transaction $transaction, Aggregates $accounts): void {
            $account = $accounts->load($transaction, '1');
            $account->deposit(1);
            $accounts->save($transaction, $account);
        };
        yield 'the first one' => [8, $deposit, '1: 9 EUR'];
        yield 'the next one' => [18, $deposit, '1: 19 EUR'];
        yield 'one that a revert deletes' => [12, static fn(Transaction $transaction, Aggregates $accounts) => $accounts->revert($transaction, '1', 12), '1: 11 EUR'];
        yield 'one of another version of the class' => [12, static function (Transaction $transaction): void {
            $transaction->execute('UPDATE weft_snapshots SET schema_version = 2');
        }, '1: 12 EUR'];
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnAggregateThatIsTakenBackIsWhatItWasAndGoesOnFromThere(string $kind): void
    {
        $accounts = new Aggregates($this->store($kind), Account::class);
        $database = $this->database($kind);
        $balance = static fn(): string => (string) $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1'));
        $database->transaction(static function (Transaction $transaction) use ($accounts): void {
            $account = Account::open('1', 'Zoë');
            foreach (\range(1, 11) as $amount) {
                $account->deposit($amount);
            }
            $accounts->save($transaction, $account);
        });
        $database->transaction(static fn(Transaction $transaction) => $accounts->revert($transaction, '1', 3));
        self::assertSame('1: 3 EUR', $balance());
        $database->transaction(static function (Transaction $transaction) use ($accounts): void {
            $account = $accounts->load($transaction, '1');
            foreach (\range(1, 10) as $_) {
                $account->deposit(100);
            }
            $accounts->save($transaction, $account);
        });
        self::assertSame('1: 1003 EUR', $balance(), 'with a snapshot behind what was taken back');
        $database->transaction(static fn(Transaction $transaction) => $accounts->revert($transaction, '1', 15));
        self::assertSame('1: 203 EUR', $balance());
        $database->transaction(static fn(Transaction $transaction) => $accounts->revert($transaction, '1', 12));
        self::assertSame('1: 66 EUR', $balance(), 'back to before it was taken back');
        self::assertEquals(new StreamReverted('account:1', 3), $this->store($kind)->read(after: 12, limit: 1)[0]->event);

        foreach ([26, 0, -1] as $version) {
            try {
                $database->transaction(static fn(Transaction $transaction) => $accounts->revert($transaction, '1', $version));
                self::fail('reverted');
            } catch (\ValueError $error) {
                self::assertStringContainsString("is at version 25 and can be reverted to version 1 and above, not to {$version}", $error->getMessage());
            }
        }
    }

    /** With work that doubles with each revert, this test does not end. */
    public function testAnAggregateThatIsRevertedAgainAndAgainIsLoadedInLinearTime(): void
    {
        $accounts = new Aggregates($this->store('sqlite'), Account::class);
        $database = $this->database('sqlite');
        $database->transaction(static function (Transaction $transaction) use ($accounts): void {
            $account = Account::open('1', 'Zoë');
            $account->deposit(1);
            $account->deposit(2);
            $accounts->save($transaction, $account);
            // Undo and redo, in turns.
            foreach (\range(2, 201) as $version) {
                $accounts->revert($transaction, '1', $version);
            }
        });
        $account = $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1'));
        self::assertSame('1: 3 EUR', (string) $account);
        $database->transaction(static fn(Transaction $transaction) => $accounts->revert($transaction, '1', 202));
        self::assertSame('1: 1 EUR', (string) $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, '1')));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testASnapshotKeepsPropertiesUninitializedThatNoEventHasInitialized(string $kind): void
    {
        $parcels = new Aggregates($this->store($kind), Parcel::class);
        $database = $this->database($kind);
        $load = static fn(): Parcel => $database->transaction(static fn(Transaction $transaction): Parcel => $parcels->load($transaction, '1'));
        $database->transaction(static fn(Transaction $transaction) => $parcels->save($transaction, Parcel::send('1')));
        Parcel::$applied = 0;
        $parcel = $load();
        self::assertSame([0, [false, false, false, false]], [Parcel::$applied, $parcel->initialized()]);

        $parcel->weigh(5);
        $database->transaction(static fn(Transaction $transaction) => $parcels->save($transaction, $parcel));
        $parcel = $load();
        self::assertSame([1, [true, false, true, false]], [Parcel::$applied, $parcel->initialized()]);
        self::assertSame([5, 0], [$parcel->weight, $parcel->size->cm]);

        $database->execute('UPDATE weft_snapshots SET state = ?', ['{"id":"1","-uninitialized":["weight","note","size"]}']);
        $this->expectException(InvalidEventException::class);
        $this->expectExceptionMessage('at $.carrier expected string, found nothing (the field is missing)');
        $load();
    }

    public function testACloneCanBeReadAndNeitherRecordedInNorSaved(): void
    {
        $accounts = new Aggregates($this->store('sqlite'), Account::class);
        $database = $this->database('sqlite');
        $account = Account::open('1', 'Zoë');
        $account->deposit(1);
        $clone = clone $account;
        self::assertSame('1: 1 EUR', (string) $clone);
        $database->transaction(static function (Transaction $transaction) use ($accounts, $account, $clone): void {
            foreach ([static fn() => $clone->deposit(2), static fn() => (clone $clone)->deposit(2), static fn() => $accounts->save($transaction, $clone), static fn() => $accounts->isClosed($clone)] as $use) {
                try {
                    $use();
                    self::fail('used');
                } catch (\Error $error) {
                    self::assertStringContainsString('Account is a clone, which has neither version nor events', $error->getMessage());
                }
            }
            $accounts->save($transaction, $account);
        });
        self::assertSame('1: 1 EUR', (string) $clone);
        self::assertSame([AccountOpened::class, 1], self::contents($this->store('sqlite')->stream('account:1')));
    }

    /** @dataProvider texts */
    #[DataProvider('texts')]
    public function testATextThatNotEveryDatabaseTakesIsRefusedByName(\Closure $use, string $what): void
    {
        $database = $this->database('sqlite');
        $store = $this->store('sqlite');
        foreach (["a\0b", "\xff\xfe", \str_repeat('x', 201)] as $text) {
            try {
                $database->transaction(static fn(Transaction $transaction) => $use($store, $transaction, $text));
                self::fail('accepted');
            } catch (\ValueError $error) {
                self::assertStringContainsString("{$what} must have ", $error->getMessage());
                self::assertStringContainsString(' bytes of UTF-8 without NUL, got "', $error->getMessage());
            }
        }
    }

    /** @return iterable<string, array{\Closure(EventStore, Transaction, string): mixed, string}> */
    public static function texts(): iterable
    {
        yield 'a stream that is appended to' => [static fn(EventStore $store, Transaction $transaction, string $text): int => $store->append($transaction, $text, 0, [new Deposited(1)]), 'The name of a stream'];
        yield 'a stream that is erased' => [static fn(EventStore $store, Transaction $transaction, string $text): int => $store->erase($transaction, $text), 'The name of a stream'];
        yield 'a stream that is read' => [static fn(EventStore $store, Transaction $transaction, string $text): array => $store->stream($text, connection: $transaction), 'The name of a stream'];
        yield 'an aggregate' => [static fn(EventStore $store, Transaction $transaction, string $text): ?Account => (new Aggregates($store, Account::class))->find($transaction, $text), 'The id of an aggregate ' . Account::class];
        yield 'the name of an aggregate' => [static fn(EventStore $store, Transaction $transaction, string $text): object => new AggregateRoot($text), 'The name of an aggregate'];
        yield 'a projection' => [static fn(EventStore $store, Transaction $transaction, string $text): int => $store->catchUp($text, static fn() => null), 'The name of a projection'];
        yield 'a projection that is reset' => [static fn(EventStore $store, Transaction $transaction, string $text) => $store->reset($text), 'The name of a projection'];
        yield 'a unique index' => [static fn(EventStore $store, Transaction $transaction, string $text): object => new UniqueIndex($store, $text), 'The name of a unique index'];
        yield 'a unique value' => [static fn(EventStore $store, Transaction $transaction, string $text) => (new UniqueIndex($store, 'email'))->claim($transaction, $text, '1'), 'A unique value'];
        yield 'an owner' => [static fn(EventStore $store, Transaction $transaction, string $text) => (new UniqueIndex($store, 'email'))->claim($transaction, 'a', $text), 'The owner of a unique value'];
        yield 'an owner that releases' => [static fn(EventStore $store, Transaction $transaction, string $text) => (new UniqueIndex($store, 'email'))->release($transaction, 'a', $text), 'The owner of a unique value'];
        yield 'an owner that releases all' => [static fn(EventStore $store, Transaction $transaction, string $text) => (new UniqueIndex($store, 'email'))->releaseAll($transaction, $text), 'The owner of a unique value'];
    }

    public function testAnEventWithAnEncryptedPropertyIsRefusedWithTheReason(): void
    {
        $this->expectException(InvalidMessageClassError::class);
        $this->expectExceptionMessage('is #[Encrypted], which only properties of messages of the bus can be');
        $this->store('sqlite')->registerEvents(CardStored::class);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testEventsOfOldVersionsAreLiftedStepByStepAndThoseFromTheFutureAreRefused(string $kind): void
    {
        $store = $this->store($kind)->upcasters(new class {
            #[Upcaster(AccountOpened::class, from: 1)]
            public function named(array $data): array
            {
                return ['id' => $data['number'], 'owner' => $data['name']];
            }

            #[Upcaster(AccountOpened::class, from: 2)]
            public function priced(array $data): array
            {
                return $data + ['currency' => 'DM'];
            }
        });
        $accounts = new Aggregates($store, Account::class);
        $database = $this->database($kind);
        foreach (['1', '2'] as $id) {
            $database->transaction(static fn(Transaction $transaction) => $accounts->save($transaction, Account::open($id, 'Zoë')));
        }
        $database->execute("UPDATE weft_events SET schema_version = 1, body = ? WHERE stream = 'account:1'", ['{"number":"1","name":"Zoë"}']);
        $database->execute("UPDATE weft_events SET schema_version = 2, body = ? WHERE stream = 'account:2'", ['{"id":"2","owner":"Ada"}']);
        self::assertSame(['1: 0 DM', '2: 0 DM'], \array_map(static fn(string $id): string => (string) $database->transaction(static fn(Transaction $transaction): Account => $accounts->load($transaction, $id)), ['1', '2']));

        $database->execute("UPDATE weft_events SET schema_version = 4 WHERE stream = 'account:1'");
        $database->execute("UPDATE weft_events SET schema_version = 3 WHERE stream = 'account:2'");
        try {
            $store->stream('account:1');
            self::fail('read');
        } catch (UnknownEventException $unknown) {
            self::assertStringContainsString('Event 1 of stream "account:1" is of version 4', $unknown->getMessage());
        }
        $this->expectException(InvalidEventException::class);
        $this->expectExceptionMessage('currency');
        $store->stream('account:2');
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testRecordedEventsArePublishedIfAndOnlyIfTheHandlerCommits(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->database($kind);
            $accounts = new Aggregates($this->store($kind), Account::class);
            $heard = new \ArrayObject();
            $bus = Bus::connect(new Memory(), $database, new BusOptions(logger: new NullLogger()))->handlers(new class ($accounts, $heard) {
                public function __construct(private readonly Aggregates $accounts, private readonly \ArrayObject $heard) {}

                #[CommandHandler]
                public function handle(OpenAccount $command, Transaction $transaction, Context $context): void
                {
                    $account = Account::open($command->id, 'Zoë');
                    $account->deposit(7);
                    try {
                        $transaction->transaction(function (Transaction $transaction) use ($account, $context): void {
                            $this->accounts->save($transaction, $account, $context);
                            throw new \DomainException('only the savepoint');
                        });
                    } catch (\DomainException) {
                    }
                    $this->accounts->save($transaction, $account, $context);
                    $command->fails && throw new \DomainException('no');
                }

                #[EventListener]
                public function opened(AccountOpened $event): void
                {
                    $this->heard[] = "opened {$event->id}";
                }

                #[EventListener]
                public function deposited(Deposited $event): void
                {
                    $this->heard[] = "deposited {$event->amount}";
                }
            });
            $bus->queue('accounts')->declare();
            $bus->send(new OpenAccount('1', fails: false));
            $bus->send(new OpenAccount('2', fails: true));
            $bus->consume('accounts', options: new ConsumeOptions(stopWhenEmpty: true, signals: false));

            self::assertSame(['opened 1', 'deposited 7'], $heard->getArrayCopy());
            $events = $this->store($kind)->read();
            self::assertSame(['account:1', 'account:1'], \array_column($events, 'stream'));
            self::assertSame($events[0]->headers['correlation-id'], $events[0]->headers['causation-id']);
            self::assertArrayHasKey('traceparent', $events[0]->headers);
            $bus->close();
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAUniqueValueBelongsToOneOwnerAndIsFreeAgainAfterwards(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->database($kind);
            $emails = new UniqueIndex($this->store($kind), 'email');
            $claim = static fn(string $value, string $owner) => $database->transaction(static fn(Transaction $transaction) => $emails->claim($transaction, $value, $owner));
            $claim('zoe@example.org', '1');
            $claim('zoe@example.org', '1');
            $claim('ZOE@example.org', '2');
            $database->transaction(function (Transaction $transaction) use ($emails): void {
                try {
                    $emails->claim($transaction, 'zoe@example.org', '3');
                    self::fail('claimed');
                } catch (ValueTakenException $taken) {
                    self::assertStringContainsString('"zoe@example.org" of "email"', $taken->getMessage());
                }
                $emails->claim($transaction, 'three@example.org', '3');
            });
            self::assertSame(['1', '3', null], \array_map(static fn(string $value): ?string => $emails->owner($database, $value), ['zoe@example.org', 'three@example.org', 'nobody@example.org']));
            self::assertFalse($emails->release($database, 'zoe@example.org', '3'));
            self::assertTrue($emails->release($database, 'zoe@example.org', '1'));
            $claim('zoe@example.org', '3');

            $winners = all(\array_map(static fn(int $owner): \Closure => static function () use ($claim, $owner): ?int {
                try {
                    $claim('wanted@example.org', (string) $owner);

                    return $owner;
                } catch (ValueTakenException) {
                    return null;
                }
            }, \range(1, 8)));
            self::assertCount(1, \array_filter($winners));
        });
    }

    /** MariaDB has refused the row of a concurrent transaction since 11.6.2. */
    public function testATransactionThatHasReadBeforeOthersCommitStoresItsEventsAndLearnsWhoHasAValue(): void
    {
        $this->inRuntime(function (): void {
            foreach (['mariadb', 'postgres'] as $kind) {
                $database = $this->database($kind);
                $store = $this->store($kind);
                $emails = new UniqueIndex($store, 'email');
                $append = static fn(Transaction $transaction, string $stream): int => $store->append($transaction, $stream, 0, [new Deposited(1)]);
                $database->transaction(static function (Transaction $transaction) use ($append, $emails): void {
                    $append($transaction, 'first');
                    $emails->claim($transaction, 'moved@example.org', '1');
                });
                $early = $database->begin();
                self::assertSame(1, \count($store->stream('first', connection: $early)));
                $database->transaction(static function (Transaction $transaction) use ($append, $emails): void {
                    $append($transaction, 'second');
                    $emails->claim($transaction, 'taken@example.org', '2');
                    $emails->change($transaction, 'moved@example.org', 'new@example.org', '1');
                });

                self::assertSame(1, $append($early, 'third'));
                $emails->claim($early, 'moved@example.org', '3');
                try {
                    $emails->claim($early, 'taken@example.org', '3');
                    self::fail('claimed');
                } catch (ValueTakenException) {
                }
                self::assertTrue($emails->release($early, 'new@example.org', '1'));
                $early->commit();
                self::assertSame(['first', 'second', 'third'], \array_column($store->read(), 'stream'), $kind);
            }
        });
    }

    /** @dataProvider unusable */
    #[DataProvider('unusable')]
    public function testAClassThatCannotBeAnAggregateIsRefusedByName(string $class, string $why): void
    {
        $this->expectException(InvalidAggregateError::class);
        $this->expectExceptionMessage($why);
        new Aggregates($this->store('sqlite'), $class);
    }

    public function testAnObjectWithoutUpcastersIsRefused(): void
    {
        $this->expectException(InvalidUpcasterException::class);
        $this->store('sqlite')->upcasters(new \stdClass());
    }

    public static function unusable(): iterable
    {
        yield 'no attribute' => [AccountOpened::class, 'needs the attribute #[AggregateRoot] and the trait RecordsEvents'];
        yield 'no class' => ['Nobody', 'Class Nobody does not exist'];
        yield 'its own __clone()' => [Cloned::class, 'Cloned has its own __clone(), which replaces that of RecordsEvents'];
        yield 'a misspelt attribute' => [Misspelt::class, '::apply() is marked with #[Weft\Tests\EventSourcing\Aplies], which is not a class. Is #[Weft\EventSourcing\Applies] meant?'];
    }
}

final class CardStored
{
    public function __construct(#[Encrypted] public readonly string $number) {}
}

final class OpenAccount
{
    public function __construct(public readonly string $id, public readonly bool $fails) {}
}

#[\Weft\EventSourcing\AggregateRoot('misspelt')]
final class Misspelt
{
    use \Weft\EventSourcing\RecordsEvents;

    public string $id = '';

    #[Aplies]
    protected function apply(AccountOpened $event): void {}
}

#[\Weft\EventSourcing\AggregateRoot('cloned')]
final class Cloned
{
    use \Weft\EventSourcing\RecordsEvents;

    public string $id = '';

    public function __clone(): void {}
}

final class ParcelSize
{
    public int $cm = 0;
    public ?string $unit;
}

#[\Weft\EventSourcing\AggregateRoot('parcel', snapshotEvery: 1)]
final class Parcel
{
    use \Weft\EventSourcing\RecordsEvents;

    public static int $applied = 0;

    public int $weight;
    public ?string $note = 'none';
    public ParcelSize $size;
    private string $id;
    private string $carrier;

    public static function send(string $id): self
    {
        $parcel = new self();
        $parcel->record(new AccountOpened($id, '', ''));

        return $parcel;
    }

    public function weigh(int $weight): void
    {
        $this->record(new Deposited($weight));
    }

    /** @return list<bool> */
    public function initialized(): array
    {
        return \array_map(fn(string $name): bool => (new \ReflectionProperty($this, $name))->isInitialized($this), ['weight', 'note', 'size', 'carrier']);
    }

    #[Applies]
    private function sent(AccountOpened $event): void
    {
        $this->id = $event->id;
        unset($this->note);
        self::$applied++;
    }

    #[Applies]
    private function weighed(Deposited $event): void
    {
        $this->weight = $event->amount;
        $this->size = new ParcelSize();
        self::$applied++;
    }
}
