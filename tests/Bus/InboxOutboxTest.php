<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Log\NullLogger;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\EventListener;
use Weft\Bus\Header;
use Weft\Bus\PublishException;
use Weft\Bus\InboxOptions;
use Weft\Bus\Internal\Persistence\Dialect;
use Weft\Bus\Internal\Persistence\InboxBatch;
use Weft\Bus\Internal\Persistence\Redeliveries;
use Weft\Bus\Internal\Persistence\Tables;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\ForgetCustomer;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\StoreCustomer;

use function Weft\async;
use function Weft\delay;
use function Weft\Native\messageId;

/** Inbox and outbox: what `Publishing::Recorded` promises, on RabbitMQ and PostgreSQL. */
class InboxOutboxTest extends BusTestCase
{
    use Servers;

    public function testAMessageThatArrivesTwiceHasOneEffectAndOneEvent(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $bus->handlers(self::inserting(), self::effect());
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([self::message('1'), self::message('1'), self::message('2')]);
            self::drain($bus);

            self::assertSame([['1', 'heard'], ['1', 'stored'], ['2', 'heard'], ['2', 'stored']], self::effects($database));
            self::assertSame([1, 0, 0], [$bus->admin()->stats()->duplicates, $bus->admin()->stats()->failed, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testADuplicateThatIsHandledAtTheSameTimeWaitsForTheOtherAndIsUndone(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $runs = 0;
            $bus->handlers(self::inserting(static function (Transaction $transaction) use (&$runs): void {
                $runs++;
                while ($runs < 3) {
                    delay(0.005);
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([self::message('1'), self::message('1'), self::message('1')]);
            self::drain($bus);

            self::assertSame([3, [['1', 'stored']], 2], [$runs, self::effects($database), $bus->admin()->stats()->duplicates]);
        });
    }

    public function testAHandlerThatSwallowsTheErrorOfADuplicateHasNoSecondEffect(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $bus->handlers(self::inserting(static function (Transaction $transaction): void {
                try {
                    $transaction->execute('SELECT 1')->value();
                } catch (\Throwable) {
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([self::message('1')]);
            $broker->publish([self::message('1')]);
            self::drain($bus);

            self::assertSame([[['1', 'stored']], 1, 0], [self::effects($database), $bus->admin()->stats()->duplicates, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testARedeliveredMessageThatWasHandledIsAcknowledgedWithoutRunningItsHandler(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $runs = 0;
            $bus->handlers(self::inserting(static function () use (&$runs): void {
                $runs++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([self::message('1')]);
            $broker->loseAcks = true;
            self::assertSame(1, $bus->consume(self::QUEUE, options: new ConsumeOptions(limit: 1)));
            $broker->loseAcks = false;
            self::drain($bus);

            self::assertSame([1, [['1', 'stored']], 1, 0], [$runs, self::effects($database), $bus->admin()->stats()->duplicates, $bus->queue(self::QUEUE)->depth()]);
        });
    }

    public function testIdsDifferByEveryByte(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $bus->handlers(self::inserting());
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([self::message('1', 'id'), self::message('2', 'ID'), self::message('3', 'id '), self::message('4', 'íd')]);
            self::drain($bus);

            self::assertSame([['1', 'stored'], ['2', 'stored'], ['3', 'stored'], ['4', 'stored']], self::effects($database));
            self::assertSame([0, 0], [$bus->admin()->stats()->duplicates, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testTwoMessagesOfOneIdAndDifferentBodiesAreAnErrorThatIsDeadLettered(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $bus->handlers(self::inserting());
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([self::message('1', id: 'same')]);
            $broker->publish([self::message('2', id: 'same')]);
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true));

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([DuplicateMessageIdException::class, self::message('2')->body], [$letter->errorClass(), $letter->body]);
            self::assertSame([['1', 'stored']], self::effects($database));
        });
    }

    public function testAMessageWithoutAnIdIsHandledAsOftenAsItArrives(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $bus->handlers(self::inserting());
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing(StoreCustomer::class, self::message('1')->body, []), new Outgoing(StoreCustomer::class, self::message('1')->body, [])]);
            self::drain($bus);

            self::assertCount(2, self::effects($database));
        });
    }

    public function testAnIdOfAnyBytesIsRecognisedAlsoWhenItIsRedelivered(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $bus->handlers(self::inserting());
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([self::message('1', "a\0"), self::message('1', "a\0"), self::message('2', "a\0b")]);
            $holder = $broker->consume(self::QUEUE, 10);
            for ($held = 0; $held < 3;) {
                $held += \count($holder->next(10));
            }
            $holder->close();
            self::drain($bus);

            self::assertSame([['1', 'stored'], ['2', 'stored']], self::effects($database));
            self::assertSame([1, 0], [$bus->admin()->stats()->duplicates, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testAMessageThatTheBrokerRefusesDoesNotHoldUpTheRelay(): void
    {
        $this->with(function (Bus $bus, Database $database): void {
            $bus->handlers(self::effect());
            $bus->queue(self::QUEUE)->declare();
            foreach (['1', '2', '3'] as $customer) {
                self::leave($database, $customer, "id {$customer}");
            }
            $database->execute('UPDATE weft_outbox SET headers = ? WHERE id = ?', [\json_encode([Header::MESSAGE_ID => 'id 2', 'note' => \str_repeat('x', 200_000)]), 'id 2']);
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            while (self::rows($database, 'effects') < 2) {
                delay(0.02);
            }
            $database->execute('UPDATE weft_outbox SET headers = ? WHERE id = ?', [\json_encode([Header::MESSAGE_ID => 'id 2']), 'id 2']);
            while (self::rows($database, 'weft_outbox') > 0 || self::rows($database, 'effects') < 3) {
                delay(0.02);
            }
            $bus->stop();
            $consuming->await();

            self::assertSame([['1', 'heard'], ['2', 'heard'], ['3', 'heard']], self::effects($database));
        });
    }

    public function testEachListenerOfAnEventHasItsEffectOnce(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $bus->handlers(self::effect(), new class {
                #[EventListener]
                public function other(CustomerStored $event, Transaction $transaction): void
                {
                    $transaction->execute('INSERT INTO effects VALUES (?, ?)', [$event->id, 'other']);
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $event = new Outgoing(CustomerStored::class, '{"id":"1"}', [Header::MESSAGE_ID => messageId()]);
            $broker->publish([$event, $event]);
            self::drain($bus);

            self::assertSame([['1', 'heard'], ['1', 'other']], self::effects($database));
            self::assertSame(2, $bus->admin()->stats()->duplicates);
        });
    }

    public function testAHandlerWithoutTransactionSendsItsMessagesOnceHoweverOftenItRuns(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $bus->handlers(self::effect(), self::storing(static fn(StoreCustomer $command, Context $context) => $context->publish(new CustomerStored($command->id))));
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([self::message('1'), self::message('1')]);
            self::drain($bus);

            self::assertSame([['1', 'heard']], self::effects($database));
        });
    }

    public function testTheRelaySendsMessagesThatCouldNotBePublishedAfterTheCommit(): void
    {
        $this->with(function (Bus $bus, Database $database, SpyTransport $broker): void {
            $bus->handlers(self::inserting(), self::effect());
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(20));
            $broker->before = static function (string $what) use ($broker): void {
                if ($what === 'publish') {
                    throw new PublishException('the broker was removed');
                }
            };
            $bus->consume(self::QUEUE, options: new ConsumeOptions(limit: 20));
            self::assertSame([20, 20, 0], [self::rows($database, 'weft_outbox'), self::rows($database, 'effects'), $bus->queue(self::QUEUE)->depth()]);
            $broker->before = null;
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            while (self::rows($database, 'effects') < 40 || self::rows($database, 'weft_outbox') > 0) {
                delay(0.02);
            }
            $bus->stop();
            $consuming->await();

            self::assertSame(40, $database->execute('SELECT count(*) FROM (SELECT DISTINCT id, listener FROM effects) different')->value());
            self::assertSame([40, 0], [self::rows($database, 'effects'), $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testTheOutboxIsEmptyAfterwardsAndWasNeverRead(): void
    {
        $this->with(function (Bus $bus, Database $database): void {
            $bus->handlers(self::inserting(), self::effect());
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(2_000));
            self::drain($bus);

            self::assertSame([0, 4_000, 4_000], [self::rows($database, 'weft_outbox'), self::rows($database, 'weft_inbox'), self::rows($database, 'effects')]);
            self::assertSame(0, $bus->admin()->stats()->duplicates, 'the relay kept out of it');
        }, relayAfter: 60.0);
    }

    public function testTheRelayPublishesARowThatCommitsLateWithASmallerId(): void
    {
        $this->with(function (Bus $bus, Database $database): void {
            $bus->handlers(self::effect());
            $bus->queue(self::QUEUE)->declare();
            $late = $database->begin();
            self::leave($late, '1', messageId());
            $late->flush();
            self::leave($database, '2', messageId());
            self::assertSame(1, $bus->admin()->flushOutbox());
            $late->commit();
            self::assertSame(1, $bus->admin()->flushOutbox());
            self::drain($bus);

            self::assertSame([['1', 'heard'], ['2', 'heard']], self::effects($database));
        });
    }

    public function testTheRelaySendsEverythingThatManyWritersCommitInAnyOrder(): void
    {
        $this->with(function (Bus $bus, Database $database): void {
            $bus->handlers(self::effect());
            $bus->queue(self::QUEUE)->declare();
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            $writers = [];
            for ($writer = 0; $writer < 8; $writer++) {
                $writers[] = async(static function () use ($database, $writer): void {
                    for ($i = 0; $i < 25; $i++) {
                        $transaction = $database->begin();
                        self::leave($transaction, (string) (100 * $writer + $i), messageId());
                        $transaction->flush();
                        delay(\random_int(0, 30) / 1000);
                        $transaction->commit();
                    }
                });
            }
            foreach ($writers as $writer) {
                $writer->await();
            }
            while (self::rows($database, 'weft_outbox') > 0 || self::rows($database, 'effects') < 200) {
                delay(0.02);
            }
            $bus->stop();
            $consuming->await();

            self::assertSame([200, 200], [self::rows($database, 'effects'), $database->execute('SELECT count(DISTINCT id) FROM effects')->value()]);
        });
    }

    public function testAMessageNobodyCanReceiveDoesNotHoldUpTheRelay(): void
    {
        $this->with(function (Bus $bus, Database $database): void {
            $bus->handlers(self::effect());
            $bus->queue(self::QUEUE)->declare();
            $database->execute("INSERT INTO weft_outbox (id, type, must_route, headers, body) VALUES ('0', ?, 1, '{}', '{}')", [ForgetCustomer::class]);
            self::leave($database, '1', messageId());

            self::assertSame(1, $bus->admin()->flushOutbox());
            self::drain($bus);
            self::assertSame([1, ['0']], [self::rows($database, 'effects'), $database->execute('SELECT id FROM weft_outbox')->column()]);
        });
    }

    public function testACommandWithoutQueueStaysInTheOutboxUntilThereIsOne(): void
    {
        $this->with(function (Bus $bus, Database $database): void {
            $bus->handlers(self::inserting(null, static fn(Context $context) => $context->send(new ForgetCustomer('1'))));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer('1'));
            self::drain($bus);
            self::assertContains('customer.forget', $database->execute('SELECT type FROM weft_outbox')->column());

            $forgotten = 0;
            $other = Bus::connect($this->brokerDsn(), $database)->handlers(new class ($forgotten) {
                public function __construct(private int &$forgotten) {}

                #[CommandHandler]
                public function forget(ForgetCustomer $command): void
                {
                    $this->forgotten++;
                }
            });
            $other->queue('forgetting')->declare();
            $other->admin()->flushOutbox();
            $other->consume('forgetting', options: new ConsumeOptions(stopWhenEmpty: true));
            $other->close();

            self::assertSame([1, 0], [$forgotten, self::rows($database, 'weft_outbox')]);
        });
    }

    public function testPruningRemovesOnlyInboxRowsOfMessagesHandledLongAgo(): void
    {
        $this->with(function (Bus $bus, Database $database): void {
            $bus->handlers(self::inserting());
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));
            self::drain($bus);
            for ($id = 1; $id <= 12_000; $id += 1_000) {
                $rows = \implode(', ', \array_map(static fn(int $id): string => "('{$id}', 1, 1, 1000)", \range($id, $id + 999)));
                $database->execute("INSERT INTO weft_inbox (message_id, consumer, body_hash, handled_at) VALUES {$rows}");
            }

            self::assertSame(12_000, $bus->admin()->prune());
            self::assertSame(3, self::rows($database, 'weft_inbox'));
        });
    }

    public function testInboxRowsHaveTheTimeOfTheDatabase(): void
    {
        $this->with(function (Bus $bus, Database $database): void {
            $bus->handlers(self::inserting(), self::effect());
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));
            self::drain($bus);
            $now = $database->execute('SELECT ' . (new Dialect($database))->seconds())->value();

            self::assertGreaterThan($now - 600, $database->execute('SELECT min(handled_at) FROM weft_inbox')->value());
            self::assertLessThanOrEqual($now, $database->execute('SELECT max(handled_at) FROM weft_inbox')->value());
        });
    }

    public function testRowsOfBatchesAndRedeliveriesHaveTheTimeOfTheDatabase(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            (new Migrator($database))->ensure(Tables::component());
            (new Redeliveries($database, new NullLogger()))->note('1', 1);
            $database->transaction(static function (Transaction $transaction) use ($database): void {
                (new InboxBatch($database, 1))->note($transaction, \array_map(static fn(int $id): Delivery => new Delivery($id, 'type', '', [Header::MESSAGE_ID => "id {$id}"], false), \range(1, 3)));
            });
            $now = $database->execute('SELECT ' . (new Dialect($database))->seconds())->value();
            foreach (['SELECT updated_at FROM weft_redeliveries', 'SELECT min(handled_at) FROM weft_inbox', 'SELECT max(handled_at) FROM weft_inbox'] as $select) {
                self::assertEqualsWithDelta($now, $database->execute($select)->value(), 600.0);
            }
            $database->close();
        });
    }

    /** @dataProvider longRetentions */
    #[DataProvider('longRetentions')]
    public function testARetentionLongerThanTheClockForgetsNothing(float $retention): void
    {
        $this->inRuntime(static function () use ($retention): void {
            $database = Database::connect('sqlite::memory:');
            $bus = Bus::connect('memory:', $database, new BusOptions(inbox: new InboxOptions(retention: $retention)));
            self::assertSame(0, $bus->admin()->prune());
            $database->execute("INSERT INTO weft_inbox (message_id, consumer, body_hash, handled_at) VALUES ('1', 1, 1, 1000)");

            self::assertSame([0, 1], [$bus->admin()->prune(), self::rows($database, 'weft_inbox')]);
        });
    }

    /** @return iterable<string, array{float}> */
    public static function longRetentions(): iterable
    {
        yield 'for ever' => [\INF];
        yield 'more than 64 bits of seconds' => [1e19];
    }

    /** @dataProvider relayTimes */
    #[DataProvider('relayTimes')]
    public function testATimeAfterWhichTheRelayWouldPublishNothingIsRefused(float $seconds): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('relayAfter must be at least 0.1 and at most 86,400 seconds, got ');
        new InboxOptions(relayAfter: $seconds);
    }

    public static function relayTimes(): iterable
    {
        yield 'at once' => [0.0];
        yield 'later than in a day' => [86_401.0];
        yield 'never' => [\INF];
        yield 'no number' => [\NAN];
    }

    /** @param \Closure(Bus, Database, SpyTransport): void $test */
    private function with(\Closure $test, float $relayAfter = 0.5): void
    {
        $this->inRuntime(function () use ($test, $relayAfter): void {
            $database = $this->database();
            $broker = new SpyTransport(RabbitMq::connect($this->brokerDsn()));
            $bus = Bus::connect($broker, $database, new BusOptions(inbox: new InboxOptions(relayAfter: $relayAfter)));
            try {
                $test($bus, $database, $broker);
            } finally {
                $bus->close();
                $database->close();
            }
        });
    }

    private static function message(string $customer, ?string $id = null): Outgoing
    {
        return new Outgoing(StoreCustomer::class, "{\"id\":\"{$customer}\",\"name\":\"a\",\"email\":\"b\"}", [Header::MESSAGE_ID => $id ?? "message {$customer}"]);
    }

    /** An event in the outbox whose worker is gone. */
    private static function leave(Database|Transaction $connection, string $customer, string $id): void
    {
        $connection->execute('INSERT INTO weft_outbox (id, type, must_route, headers, body) VALUES (?, ?, 0, ?, ?)', [$id, CustomerStored::class, \json_encode([Header::MESSAGE_ID => $id]), "{\"id\":\"{$customer}\"}"]);
    }

    private static function inserting(?\Closure $then = null, ?\Closure $send = null): object
    {
        return new class ($then ?? static fn() => null, $send ?? static fn() => null) {
            public function __construct(private readonly \Closure $then, private readonly \Closure $send) {}

            #[CommandHandler]
            public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
            {
                $transaction->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'stored']);
                $context->publish(new CustomerStored($command->id));
                ($this->then)($transaction);
                ($this->send)($context);
            }
        };
    }

    private static function effect(): object
    {
        return new class {
            #[EventListener]
            public function heard(CustomerStored $event, Transaction $transaction): void
            {
                $transaction->execute('INSERT INTO effects VALUES (?, ?)', [$event->id, 'heard']);
            }
        };
    }

    /** @return list<list<string>> */
    private static function effects(Database $database): array
    {
        return \array_map('array_values', $database->execute('SELECT id, listener FROM effects ORDER BY id, listener')->rows());
    }

    private static function rows(Database $database, string $table): int
    {
        return $database->execute("SELECT count(*) FROM {$table}")->value();
    }
}
