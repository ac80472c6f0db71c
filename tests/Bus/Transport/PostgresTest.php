<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Psr\Log\AbstractLogger;
use Weft\Bus\Header;
use Weft\Bus\Internal\Postgres\Store;
use Weft\Bus\PublishException;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Bus\TransportException;
use Weft\Pool\PoolOptions;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Tests\Bus\Fixtures\PostgresSchema;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

final class PostgresTest extends TransportConformance
{
    use DeletedQueues;
    use PostgresSchema;

    protected const SERVER = 'DATABASE_URL';

    protected function connect(): Transport
    {
        return Postgres::connect($this->databaseDsn('weft-transport'));
    }

    public function testMessagesOfHigherPriorityAreDeliveredFirst(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $message = fn(string $body, ?string $priority): Outgoing
                => new Outgoing($this->type('a'), $body, $priority === null ? [] : [Header::PRIORITY => $priority]);
            $transport->publish([$message('1', null), $message('2', '3'), $message('3', '9'), $message('4', '77'), $message('5', '0'), $message('6', '5')]);

            self::assertSame(['3', '4', '6', '1', '2', '5'], $this->drain($transport), 'without one it is 4');
        });
    }

    public function testPublishersAtTheSameTimeLoseAndMixUpNothing(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $tasks = [];
            foreach (\range(0, 99) as $task) {
                $tasks[] = async(function () use ($transport, $task): void {
                    foreach (\range(0, 9) as $i) {
                        $transport->publish([$this->message('a', (string) ($task * 10 + $i))]);
                    }
                });
            }
            foreach ($tasks as $task) {
                $task->await();
            }

            $bodies = \array_map('intval', $this->drain($transport));
            foreach (\range(0, 99) as $task) {
                self::assertSame(\range($task * 10, $task * 10 + 9), \array_values(\array_filter($bodies, static fn(int $body): bool => \intdiv($body, 10) === $task)));
            }
        });
    }

    public function testAPublicationThatWasCancelledWhileItWaitedIsNotMadeLater(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $database = Database::connect($this->databaseDsn());
            $lock = $database->begin();
            $lock->execute('LOCK TABLE weft_messages IN EXCLUSIVE MODE');
            $lock->flush();
            $first = async(fn() => $transport->publish([$this->message('a', 'first')]));
            delay(0.05);
            try {
                timeout(0.05, fn() => $transport->publish([$this->message('a', 'cancelled')]));
                self::fail('published');
            } catch (TimeoutException) {
            }
            $lock->rollback();
            $first->await();
            $transport->publish([$this->message('a', 'last')]);

            self::assertSame(['first', 'last'], $this->drain($transport));
            $database->close();
        });
    }

    public function testOneMessageThatTheServerRefusesFailsAlone(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $failures = [];
            $tasks = [];
            foreach (['good', 'bad', 'fine'] as $name) {
                $tasks[] = async(function () use ($transport, $name, &$failures): void {
                    try {
                        $transport->publish([new Outgoing($name === 'bad' ? "no\0type" : $this->type('a'), $name, [])]);
                    } catch (PublishException $failed) {
                        $failures[$name] = $failed->getMessage();
                    }
                });
            }
            foreach ($tasks as $task) {
                $task->await();
            }
            self::assertSame(['bad'], \array_keys($failures));
            self::assertStringContainsString('NUL', $failures['bad']);
            self::assertSame(['good', 'fine'], $this->drain($transport));
        });
    }

    public function testTheServerPlansASingleMessageOnlyForItsFirstUses(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $database = Database::connect($this->databaseDsn(), new PoolOptions(size: 1));
            $store = new Store($database);
            for ($i = 0; $i < 20; ++$i) {
                $store->insert($database, [$this->message('a', "routed $i")]);
                $store->insertInto($database, $this->queue(), [$this->message('a', "direct $i")]);
            }

            $plans = $database->execute("SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE statement ~ '^(INSERT|WITH) '")->rows();
            self::assertSame(\array_fill(0, 2, ['custom_plans' => 5, 'generic_plans' => 15]), $plans, 'PostgreSQL compares with the first five plans');
            self::assertCount(40, $this->drain($transport));
            $database->close();
        });
    }

    public function testTheConnectionThatSaysAConsumerLivesKeepsVacuumFromNothing(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $consumer = $transport->consume($this->queue(), 10);
            $this->take($consumer, 1);
            $database = Database::connect($this->databaseDsn());

            $sessions = $database->execute("SELECT backend_xid::text AS xid, backend_xmin::text AS xmin FROM pg_stat_activity
                WHERE application_name = 'weft-transport' AND state = 'idle in transaction'")->rows();
            self::assertSame([['xid' => null, 'xmin' => null]], $sessions);
            $database->close();
        });
    }

    public function testAProcessWithoutConsumersHoldsNoLocksOfThoseThatItHad(): void
    {
        run(function (): void {
            $name = 'weft-locks-' . \bin2hex(\random_bytes(6));
            $transport = Postgres::connect($this->databaseDsn($name));
            $transport->declare($this->queue(), [$this->type('a')]);
            $observer = Database::connect($this->databaseDsn('weft-observer'));
            $locks = static fn(): int => $observer->execute("SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND application_name = ?", [$name])->value();
            try {
                for ($round = 0; $round < 3; $round++) {
                    $consumer = $transport->consume($this->queue(), 1);
                    $transport->publish([$this->message('a', "$round")]);
                    [$delivery] = $this->take($consumer, 1);
                    self::assertSame(["$round", 1], [$delivery->body, $locks()]);
                    $consumer->ack($delivery);
                    $consumer->close();
                    self::assertSame(0, $locks());
                }
            } finally {
                $transport->close();
                $observer->close();
            }
        });
    }

    public function testMessagesOfAConsumerWhoseConnectionsAreLostAreRedeliveredWithinSeconds(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1'), $this->message('a', '2')]);
            $gone = Postgres::connect($this->databaseDsn('weft-gone'));
            $lost = $gone->consume($this->queue(), 1);
            self::assertSame('1', $this->take($lost, 1)[0]->body);
            $consumer = $transport->consume($this->queue(), 10);
            self::assertSame('2', $this->take($consumer, 1)[0]->body);
            $started = \microtime(true);
            $this->cut('weft-gone');

            [$delivery] = $this->take($consumer, 1);
            self::assertSame(['1', true], [$delivery->body, $delivery->redelivered]);
            self::assertLessThan(50.0, \microtime(true) - $started);
            $gone->close();
        });
    }

    public function testAnAcknowledgementWhoseConnectionIsLostIsMadeAgainThoughAnotherConsumerHasClosed(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $transport->consume($this->queue(), 1)->close();
            $consumer = $transport->consume($this->queue(), 1);
            [$delivery] = $this->take($consumer, 1);
            $database = Database::connect($this->databaseDsn());
            $count = static fn(string $query): int => $database->execute($query)->value();

            $lock = $database->begin();
            $lock->execute('SELECT id FROM weft_messages FOR UPDATE');
            $lock->flush();
            $consumer->ack($delivery);
            while ($count("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weft-transport' AND wait_event_type = 'Lock'") === 0) {
                delay(0.01);
            }
            $this->cut('weft-transport', "wait_event_type = 'Lock'");
            $lock->rollback();
            while ($count('SELECT count(*) FROM weft_messages') > 0) {
                delay(0.01);
            }
            self::assertSame([], $consumer->next(1, wait: 0.0));
            $database->close();
        });
    }

    public function testALockThatPassesHoldsAcknowledgementsUpAndEndsNothing(): void
    {
        $this->on(function (): void {
            $transport = Postgres::connect(\str_replace($this->schema, $this->schema . \rawurlencode(' -c lock_timeout=50'), $this->databaseDsn()));
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1'), $this->message('a', '2')]);
            $consumer = $transport->consume($this->queue(), 1);
            [$delivery] = $this->take($consumer, 1);
            $database = Database::connect($this->databaseDsn());
            $lock = $database->begin();
            $lock->execute('LOCK TABLE weft_messages IN EXCLUSIVE MODE');
            $lock->flush();
            $consumer->ack($delivery);
            self::assertSame([], $consumer->next(1, wait: 0.3));
            $lock->rollback();

            self::assertSame(['2'], \array_column($this->take($consumer, 1), 'body'));
            while ($database->execute('SELECT count(*) FROM weft_messages')->value() > 1) {
                delay(0.01);
            }
            $transport->close();
            $database->close();
        });
    }

    public function testAFailureToAcknowledgeEndsTheConsumersAndNotTheTransport(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $consumer = $transport->consume($this->queue(), 1);
            $other = $transport->consume($this->queue(), 1);
            [$delivery] = $this->take($consumer, 1);
            $database = Database::connect($this->databaseDsn());
            $database->execute("CREATE FUNCTION refuse() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no deletion today''; END'");
            $database->execute('CREATE TRIGGER refuse BEFORE DELETE ON weft_messages FOR EACH ROW EXECUTE FUNCTION refuse()');
            $consumer->ack($delivery);
            try {
                while (true) {
                    self::assertSame([], $consumer->next(1, wait: 0.01));
                }
            } catch (TransportException $failed) {
                self::assertStringContainsString('no deletion today', $failed->getMessage());
            }
            $later = $transport->consume($this->queue(), 1);
            self::assertSame([], $later->next(1, wait: 0.0), 'one that is opened then has not failed');
            try {
                $other->next(1, wait: 0.0);
                self::fail('One that was open before goes on');
            } catch (TransportException $failed) {
                self::assertStringContainsString('no deletion today', $failed->getMessage());
            }
            foreach ([$later, $other, $consumer] as $open) {
                $open->close();
            }
            $database->execute('DROP TRIGGER refuse ON weft_messages');

            self::assertSame(['1'], $this->drain($transport));
            $database->close();
        });
    }

    public function testAConsumerThatWasConsideredDeadCannotSettle(): void
    {
        $this->on(function (Transport $transport): void {
            $database = Database::connect($this->databaseDsn());
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish(\array_map(fn(int $i): Outgoing => $this->message('a', (string) $i), \range(1, 4)));
            $gone = Postgres::connect($this->databaseDsn('weft-gone'));
            $lost = $gone->consume($this->queue(), 4);
            [$acked, $deadLettered, $requeued, $enlisted] = $this->take($lost, 4);
            $consumer = $transport->consume($this->queue(), 10);
            $this->cut('weft-gone', "state = 'idle in transaction'");
            $again = $this->take($consumer, 4);

            \assert($lost instanceof TransactionalConsumer);
            $lost->ack($acked);
            $lost->deadLetter($deadLettered, []);
            $lost->requeue($requeued);
            try {
                $database->transaction(static fn($transaction) => $lost->enlist($transaction, $enlisted, []));
                self::fail('settled');
            } catch (SqlException $exception) {
                self::assertStringContainsString('the message belongs to another consumer', $exception->getMessage());
            }
            $gone->close();

            self::assertSame([0, 0], [$transport->depth($this->queue()), $transport->depth("{$this->queue()}.dead")]);
            foreach ($again as $delivery) {
                $consumer->ack($delivery);
            }
            $consumer->close();
            self::assertSame(0, $database->execute('SELECT count(*) FROM weft_messages')->value());
            $database->close();
        });
    }

    public function testAConsumerGoesOnWhenEveryConnectionWasCut(): void
    {
        $this->on(function (): void {
            $transport = Postgres::connect($this->databaseDsn('weft-cut'));
            $log = new class extends AbstractLogger {
                /** @var list<string> */
                public array $lines = [];

                public function log($level, $message, array $context = []): void
                {
                    $this->lines[] = "{$level}: {$message}";
                }
            };
            $reporting = async(fn() => $transport->report($log));
            $transport->declare($this->queue(), [$this->type('a')]);
            $consumer = $transport->consume($this->queue(), 10);
            $waiting = async(fn(): array => $this->take($consumer, 2));
            delay(0.2);
            $this->cut('weft-cut');
            delay(1.6);
            $transport->publish([$this->message('a', '1'), $this->message('a', '2')]);

            self::assertSame(['1', '2'], \array_map(static fn(Delivery $delivery): string => $delivery->body, $waiting->await()));
            while (!\str_contains(\implode("\n", $log->lines), 'warning: ')) {
                delay(0.01);
            }
            $reporting->cancel();
            $transport->close();
        });
    }

    public function testAConsumerFindsMessagesAfterEveryIdleConnectionWasCut(): void
    {
        $this->on(function (): void {
            $transport = Postgres::connect($this->databaseDsn('weft-cut'));
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->consume($this->queue(), 10)->close();
            foreach ([1, 2, 3] as $round) {
                $transport->publish([$this->message('a', (string) $round)]);
                $this->cut('weft-cut');
                $consumer = $transport->consume($this->queue(), 10);
                $deliveries = $consumer->next(10, wait: 30.0);
                self::assertSame([(string) $round], \array_column($deliveries, 'body'));
                $consumer->ack($deliveries[0]);
                $consumer->close();
            }
            $transport->close();
        });
    }

    public function testTheTableStaysSmallHoweverManyMessagesGoThroughIt(): void
    {
        // A database of its own: VACUUM keeps the dead rows that the oldest transaction of the same database could still see.
        $name = 'small_' . \bin2hex(\random_bytes(6));
        self::administer("CREATE DATABASE {$name}");
        try {
            $dsn = \preg_replace('{/weft$}', "/{$name}", self::setting('DATABASE_URL'));
            run(fn() => timeout(self::DEADLINE, fn() => $this->sendAndMeasure($dsn)));
        } finally {
            self::administer("DROP DATABASE {$name} WITH (FORCE)");
        }
    }

    private function sendAndMeasure(string $dsn): void
    {
        $transport = Postgres::connect($dsn);
        $database = Database::connect($dsn);
        $transport->declare($this->queue(), [$this->type('a')]);
        $consumer = $transport->consume($this->queue(), 500);
        $body = \str_repeat('x', 1000);
        $sizes = [];
        foreach (\range(1, 32) as $_) {
            $transport->publish(\array_map(fn(int $i): Outgoing => $this->message('a', $body), \range(1, 1000)));
            for ($taken = 0; $taken < 1000; $taken += \count($batch)) {
                $batch = $consumer->next(500, wait: 5.0);
                \array_map($consumer->ack(...), $batch);
            }
            $sizes[] = $database->execute("SELECT pg_total_relation_size('weft_messages')")->value();
        }
        $holders = $database->execute('SELECT application_name, state, query FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND datname = current_database()')->rows();
        $consumer->close();
        $transport->close();
        $database->close();

        $report = \implode(' ', $sizes) . ' ' . \json_encode($holders, \JSON_INVALID_UTF8_SUBSTITUTE);
        // Each is there twice, as it was sent and as it was taken: all 32,000 would be 85 MB.
        self::assertLessThan(48_000_000, \max($sizes), $report);
        // The server cleans and shortens the file when it likes, so the peaks are compared. Without cleaning the second is twice the first.
        self::assertLessThan(1.7 * \max(\array_slice($sizes, 0, 16)), \max(\array_slice($sizes, 16)), $report);
    }

    private static function administer(string $statement): void
    {
        $database = Database::connect(self::setting('DATABASE_URL'));
        $database->execute($statement);
        $database->close();
    }

    public function testADatabaseOfAnotherKindAndAPoolThatIsTooSmallAreRefused(): void
    {
        try {
            Postgres::on(Database::connect('sqlite::memory:'));
            self::fail('taken');
        } catch (\ValueError $error) {
            self::assertStringContainsString('needs a PostgreSQL database, got Sqlite', $error->getMessage());
        }
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('needs a pool of at least 3 connections, got one of 2');

        Postgres::on(Database::connect($this->databaseDsn(), new PoolOptions(size: 2)));
    }

    public function testAServerThatIsNotThereIsNamed(): void
    {
        $this->expectException(TransportException::class);
        $this->expectExceptionMessageMatches('/Cannot connect to the broker in PostgreSQL: .*127\.0\.0\.1:1/');

        Postgres::connect('postgres://nobody@127.0.0.1:1/nothing');
    }

    /** Ends connections on the server's side. */
    private function cut(string $application, string $which = 'TRUE'): void
    {
        $database = Database::connect(self::setting('DATABASE_URL'));
        $database->execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ? AND {$which}", [$application]);
        $database->close();
    }
}
