<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Log\NullLogger;
use Weft\Bus\BlockedKey;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\DeadLetterFilter;
use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\EventListener;
use Weft\Bus\Header;
use Weft\Bus\Internal\Ordering\ActiveConsumerLock;
use Weft\Bus\Internal\Persistence\BlockedKeys;
use Weft\Bus\Internal\Persistence\Tables;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\MessageOptions;
use Weft\Bus\NoHandlerException;
use Weft\Bus\OrderedBy;
use Weft\Bus\DeliveryGuarantee;
use Weft\Bus\Retry;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\Sqlite;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Sql\DataException;
use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\MariaDb;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Bus\Fixtures\Withdraw;
use Weft\Tests\Cli\Weft;
use Weft\Tests\RecordingLogger;
use Weft\Tests\Timing;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\tasks;
use function Weft\timeout;

require_once __DIR__ . '/Fixtures/ordered.php';

final class OrderTest extends BusTestCase
{
    use MariaDb;
    use Servers;
    use TemporaryDatabase;

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testMessagesOfAKeyAreHandledInOrderAndOthersBesideThem(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $seen = $running = [];
            $most = 0;
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(function (object $message) use (&$seen, &$running, &$most): void {
                self::assertArrayNotHasKey($message->account, $running, 'two messages of a key at a time');
                $running[$message->account] = true;
                $most = \max($most, \count($running));
                // The first handlers wait for each other: on a busy machine one may end before the next begins.
                do {
                    delay(\mt_rand(0, 3) / 1000);
                } while ($most <= 4);
                unset($running[$message->account]);
                $seen[$message->account][] = $message->number;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::interleaved(keys: 20, messages: 25));
            $bus->consume(self::QUEUE, concurrency: 16, options: new ConsumeOptions(prefetch: 500, stopWhenEmpty: true));

            self::assertCount(20, $seen);
            foreach ($seen as $account => $numbers) {
                self::assertSame(\range(1, 25), $numbers, "account {$account}");
            }
            self::assertGreaterThan(4, $most);
            $bus->close();
            $database->close();
        });
    }

    /** @return iterable<string, array{string}> */
    public static function places(): iterable
    {
        yield 'memory and SQLite' => ['memory'];
        yield 'one SQLite file' => ['sqlite'];
        yield 'RabbitMQ and PostgreSQL' => ['servers'];
        yield 'memory and MariaDB or MySQL' => ['mariadb'];
        yield 'one PostgreSQL database' => ['postgres'];
    }

    public function testHoweverManyMessagesAKeyHasTasksAndMemoryStayTheSame(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $tasks = $memory = [];
            $last = 0;
            $bus = Bus::connect(new Memory(), $database, new BusOptions(guarantee: DeliveryGuarantee::AtLeastOnce))->handlers(self::accounts(static function (object $message) use (&$tasks, &$memory, &$last): void {
                self::assertSame($last + 1, $message->number);
                $last = $message->number;
                if ($last % 1_000 === 0) {
                    // Another turn of the loop: tasks that have ended are gone.
                    delay(0.0);
                    $tasks[] = \count(tasks());
                    $memory[] = \memory_get_usage();
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $consumer = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 16, options: new ConsumeOptions(signals: false, limit: 12_000)));
            for ($number = 1; $number <= 12_000; $number += 500) {
                // A few at a time, so that those that wait do not hide what is left of those that were handled.
                $bus->sendAll(\array_map(static fn(int $next): Deposit => new Deposit('a', $next), \range($number, $number + 499)));
                while ($bus->queue(self::QUEUE)->depth() > 0) {
                    delay(0.001);
                }
            }

            self::assertSame(12_000, $consumer->await());
            self::assertSame(12_000, $last);
            self::assertLessThanOrEqual(\min($tasks) + 3, \max($tasks), \implode(' ', $tasks));
            // One task, its fiber and its locals alone would be more than a kilobyte a message.
            self::assertLessThan($memory[1] + 1_000_000, \end($memory));
            $bus->close();
            $database->close();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testLaterMessagesOfAKeyWaitForTheFailedOneToSucceedAndThenRunInOrder(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $seen = [];
            $broken = true;
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(static function (object $message) use (&$seen, &$broken): void {
                if ($broken && $message->account === 'a3' && $message->number === 2) {
                    throw new \DomainException('the account is closed');
                }
                $seen[$message->account][] = $message->number;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::interleaved(keys: 5, messages: 6));
            self::drain($bus);

            self::assertSame([1], $seen['a3']);
            self::assertSame(\range(1, 6), $seen['a4']);
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([['account:a3', $letter->messageId(), 4, false]], \array_map(static fn(BlockedKey $key): array => [$key->key, $key->messageId, $key->waiting, $key->released], $bus->queue(self::QUEUE)->blockedKeys()));

            // Later ones of the key wait behind it too, also with another worker; those of other keys do not.
            $bus->send(new Deposit('a3', 7));
            $bus->send(new Deposit('a4', 7));
            self::drain($bus);
            self::assertSame([[1], \range(1, 7), 5], [$seen['a3'], $seen['a4'], $bus->queue(self::QUEUE)->blockedKeys()[0]->waiting]);

            $broken = false;
            self::assertSame(1, $bus->queue(self::QUEUE)->deadLetters()->retry());
            $bus->send(new Deposit('a3', 8));
            self::drain($bus);
            self::assertSame(\range(1, 8), $seen['a3']);
            self::assertSame([], $bus->queue(self::QUEUE)->blockedKeys());
            $bus->send(new Deposit('a3', 9));
            self::drain($bus);
            self::assertSame(\range(1, 9), $seen['a3']);
            $bus->close();
            $database->close();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testLargeMessagesBehindABlockedKeyAreReadAFewAtATime(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [, $database] = $this->place($place);
            (new Migrator($database))->ensure(Tables::component());
            $keys = new BlockedKeys($database);
            $keys->block(self::QUEUE, 'a', 'id');
            // 1.5 MiB each, one of 5 MiB, and small ones.
            foreach ([3 << 19, 3 << 19, 3 << 19, 5 << 20, 10, 10] as $number => $bytes) {
                $keys->add(self::QUEUE, 'a', new Delivery($number, 'deposit', \str_repeat('x', $bytes), [Header::MESSAGE_ID => "id {$number}"], false));
            }
            $batches = [];
            while (($waiting = $keys->waiting(self::QUEUE, 'a')) !== []) {
                $batches[] = \array_map(static fn(Delivery $delivery): string => $delivery->headers[Header::MESSAGE_ID], $waiting);
                \array_map($keys->remove(...), $waiting);
            }

            self::assertSame([['id 0', 'id 1'], ['id 2'], ['id 3'], ['id 4', 'id 5']], $batches);
            $database->close();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAMessageIsAddedToABlockedKeyInOneStatement(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [, $database] = $this->place($place);
            (new Migrator($database))->ensure(Tables::component());
            $keys = new BlockedKeys($database);
            $keys->block(self::QUEUE, 'a', 'id');
            $delivery = static fn(int $number, string $body = 'body'): Delivery => new Delivery($number, 'deposit', $body, [Header::MESSAGE_ID => "id {$number}"], false);
            // SQLite has no pool that counts.
            $statements = static fn(): int => (int) ($database->stats()['borrowed'] ?? 0);
            $before = $statements();
            self::assertTrue($keys->add(self::QUEUE, 'a', $delivery(1)));
            self::assertSame($database->driver() === Driver::Sqlite ? 0 : 1, $statements() - $before);

            self::assertFalse($keys->add(self::QUEUE, 'b', $delivery(2)), 'it is not blocked');
            self::assertTrue($keys->add(self::QUEUE, 'a', $delivery(1)), 'it waits already');
            self::assertSame(1, $keys->waitingIn(self::QUEUE));
            try {
                $keys->add(self::QUEUE, 'a', $delivery(1, 'other'));
                self::fail('Another message has the same id');
            } catch (DuplicateMessageIdException) {
            }
            $keys->forgetQueue(self::QUEUE);
            self::assertFalse($keys->add(self::QUEUE, 'a', $delivery(3)));
            self::assertSame(0, $keys->waitingIn(self::QUEUE));
            $database->close();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAMessageThatIsAddedWhileItsQueueIsDeletedDoesNotStay(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [, $database] = $this->place($place);
            (new Migrator($database))->ensure(Tables::component());
            $keys = new BlockedKeys($database);
            for ($round = 0; $round < 20; $round++) {
                $keys->block(self::QUEUE, 'a', 'id');
                $add = static fn(int $number): \Closure => static fn(): bool => $keys->add(self::QUEUE, 'a', new Delivery($number, 'deposit', 'body', [Header::MESSAGE_ID => "id {$number}"], false));
                all([$add(1), $add(2), static fn() => $keys->forgetQueue(self::QUEUE), $add(3), $add(4)]);

                self::assertSame(0, $keys->waitingIn(self::QUEUE));
            }
            $database->close();
        });
    }

    public function testAReleasedKeyGoesOnWithoutTheMessageThatHasFailed(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('memory');
            $seen = [];
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(static function (object $message) use (&$seen): void {
                if ($message->number === 1 || $message->number === 3) {
                    throw new \DomainException("no {$message->number}");
                }
                $seen[] = $message->number;
            }));
            $bus->queue(self::QUEUE)->declare();
            for ($number = 1; $number <= 5; $number++) {
                $bus->send(new Deposit('a', $number));
            }
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            $until = static function (\Closure $done): void {
                while (!$done()) {
                    delay(0.01);
                }
            };
            $waiting = static fn(): int => $bus->queue(self::QUEUE)->blockedKeys()[0]->waiting ?? -1;
            $until(static fn(): bool => $waiting() === 4);
            self::assertFalse($bus->queue(self::QUEUE)->releaseKey('account:b'));
            self::assertTrue($bus->queue(self::QUEUE)->releaseKey('account:a'));
            $until(static fn(): bool => $waiting() === 2 && $bus->queue(self::QUEUE)->deadLetters()->count() === 2);
            self::assertSame([2], $seen);
            $bus->send(new Deposit('a', 6));
            $until(static fn(): bool => $waiting() === 3);
            $bus->queue(self::QUEUE)->deadLetters()->delete(new DeadLetterFilter());
            $bus->queue(self::QUEUE)->releaseKey('account:a');
            $until(static fn(): bool => $waiting() === -1);
            self::assertSame([2, 4, 5, 6], $seen);
            $bus->stop();
            $consumer->await();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAKeyThatADeadLetterBlocksIsLoggedAndReleasedWhenTheLetterIsDeletedOrItsQueuePurged(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $seen = [];
            $log = new RecordingLogger();
            $bus = Bus::connect($transport, $database, new BusOptions(retry: new Retry(), logger: $log))->handlers(self::accounts(static function (object $message) use (&$seen): void {
                $message->number === 1 ? throw new \DomainException('no') : $seen[] = "{$message->account}{$message->number}";
            }));
            $queue = $bus->queue(self::QUEUE);
            $queue->declare();
            $bus->sendAll([new Deposit('a', 1), new Deposit('a', 2), new Deposit('b', 1), new Deposit('b', 2)]);
            self::drain($bus);
            $blockers = \array_column($queue->blockedKeys(), 'messageId', 'key');
            \ksort($blockers);
            self::assertSame(['account:a', 'account:b'], \array_keys($blockers));
            foreach ($blockers as $key => $id) {
                $told = \array_filter($log->lines, static fn(string $line): bool => \str_starts_with($line, "warning Key {$key} of queue " . self::QUEUE . " is blocked by dead letter {$id}: "));
                self::assertCount(1, $told, \implode("\n", $log->lines));
            }

            self::assertSame(1, $queue->deadLetters()->delete(new DeadLetterFilter(id: $blockers['account:a'])));
            self::drain($bus);
            $bus->send(new Deposit('a', 3));
            self::drain($bus);
            self::assertSame(['a2', 'a3'], $seen);
            self::assertSame(['account:b'], \array_column($queue->blockedKeys(), 'key'));

            self::assertSame(1, $bus->queue(self::QUEUE . '.dead')->purge());
            self::drain($bus);
            self::assertSame(['a2', 'a3', 'b2'], $seen);
            self::assertSame([], $queue->blockedKeys());
            $bus->close();
        });
    }

    public function testADeletedDeadLetterReleasesNoKeyWhileAnotherListenerIsStillToBeRetried(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('memory');
            $seen = [];
            $bus = Bus::connect($transport, $database)->handlers(new class ($seen) {
                private bool $hasFailed = false;

                public function __construct(private array &$seen) {}

                #[EventListener]
                #[Retry]
                public function broken(Booking $event): void
                {
                    $event->number === 1 && throw new \DomainException('never');
                }

                #[EventListener]
                #[Retry(delayed: 1, delay: 0.5, jitter: 0.0)]
                public function slow(Booking $event): void
                {
                    if (!$this->hasFailed) {
                        $this->hasFailed = true;
                        throw new \RuntimeException('not now');
                    }
                    $this->seen[] = $event->number;
                }
            });
            $queue = $bus->queue(self::QUEUE);
            $queue->declare();
            $bus->publish(new Booking('a', 1));
            $bus->publish(new Booking('a', 2));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            while ($queue->deadLetters()->count() === 0) {
                delay(0.01);
            }
            self::assertSame(1, $queue->deadLetters()->delete(new DeadLetterFilter()));
            while (\count($seen) < 2) {
                delay(0.01);
            }
            $bus->stop();
            $consuming->await();

            self::assertSame([1, 2], $seen);
            $bus->close();
        });
    }

    public function testAMessageThatWaitsForARetryHoldsUpItsKeyAndNoOther(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('memory');
            $seen = [];
            $bus = Bus::connect($transport, $database)->handlers(new class ($seen) {
                private int $failures = 0;

                public function __construct(private array &$seen) {}

                #[CommandHandler]
                #[Retry(delayed: 2, delay: 0.1, jitter: 0.0)]
                public function deposit(Deposit $command): void
                {
                    if ($command->account === 'a' && $command->number === 1 && ++$this->failures < 3) {
                        throw new \DomainException('not yet');
                    }
                    $this->seen[] = "{$command->account}{$command->number}";
                }
            });
            $bus->queue(self::QUEUE)->declare();
            foreach ([['a', 1], ['a', 2], ['b', 1], ['a', 3], ['b', 2]] as [$account, $number]) {
                $bus->send(new Deposit($account, $number));
            }
            while (\count($seen) < 5) {
                self::drain($bus);
            }

            self::assertSame(['b1', 'b2', 'a1', 'a2', 'a3'], $seen);
            self::assertSame([], $bus->queue(self::QUEUE)->blockedKeys());
        });
    }

    public function testAWorkerThatStopsWhileItHandlesWhatHasWaitedLeavesTheRestInOrderToTheNext(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('memory');
            $seen = [];
            $broken = true;
            $bus = Bus::connect($transport, $database);
            $bus->handlers(self::accounts(static function (object $message) use ($bus, &$seen, &$broken): void {
                if ($broken) {
                    throw new \DomainException('not yet');
                }
                $seen[] = $message->number;
                $message->number === 3 && $bus->stop();
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(\array_map(static fn(int $number): Deposit => new Deposit('a', $number), \range(1, 8)));
            self::drain($bus);
            $broken = false;
            $bus->queue(self::QUEUE)->deadLetters()->retry();
            self::drain($bus);
            self::assertSame([1, 2, 3], $seen);
            self::assertTrue($bus->queue(self::QUEUE)->blockedKeys()[0]->released);

            $bus->send(new Deposit('a', 9));
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            while (\count($seen) < 9) {
                delay(0.01);
            }
            $bus->stop();
            $consumer->await();
            self::assertSame(\range(1, 9), $seen);
        });
    }

    public function testOneOfManyConsumersWorksAndAnotherTakesOverWhereItStopped(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $buses = $consumers = [];
            $database = Database::connect($this->dsn());
            foreach (['one', 'two', 'three'] as $name) {
                $buses[$name] = Bus::connect(Sqlite::on($database), $database)->handlers(self::accounts(static function (object $message) use (&$seen, &$buses, $name): void {
                    delay(0.001);
                    $seen[] = [$name, $message->number];
                    \count($seen) === 20 && $buses[$name]->stop();
                }));
                $buses[$name]->queue(self::QUEUE)->declare();
                $consumers[$name] = async(static fn() => $buses[$name]->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            }
            $buses['one']->sendAll(\array_map(static fn(int $number): Deposit => new Deposit('a', $number), \range(1, 40)));
            while (\count($seen) < 40) {
                delay(0.01);
            }
            foreach ($buses as $name => $bus) {
                $bus->stop();
                $consumers[$name]->await();
            }

            self::assertSame(\range(1, 40), \array_column($seen, 1));
            self::assertCount(2, \array_unique(\array_column($seen, 0)));
        });
    }

    public function testAStandbyLeavesAQueueAloneThatWasPausedMeanwhile(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $database = Database::connect($this->dsn());
            $handlers = self::accounts(static function (object $message) use (&$seen): void {
                $seen[] = $message->number;
            });
            $active = Bus::connect($own = new SpyTransport(new Memory()), $database)->handlers($handlers);
            $bus = Bus::connect($transport = new SpyTransport(new Memory()), $database, new BusOptions(logger: $logger = new RecordingLogger()))->handlers($handlers);
            $bus->queue(self::QUEUE)->declare();
            $first = async(static fn() => $active->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            while ($own->prefetches === []) {
                delay(0.01);
            }
            $bus->sendAll(\array_map(static fn(int $number): Deposit => new Deposit('a', $number), \range(1, 5)));
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            delay(0.1);
            $active->queue(self::QUEUE)->pause();
            $active->stop();
            $first->await();
            while (!$logger->hasRecord('notice', 'Queue {queue} is paused')) {
                delay(0.01);
            }
            self::assertSame([[], []], [$seen, $transport->prefetches]);
            $bus->queue(self::QUEUE)->resume();
            while (\count($seen) < 5) {
                delay(0.01);
            }
            $bus->stop();
            $consumer->await();

            self::assertSame(\range(1, 5), $seen);
            $bus->close();
            $database->close();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAConsumerThatTakesOverWaitsForTheMessagesThatTheOneBeforeStillHolds(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $seen = [];
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(static function (object $message) use (&$seen): void {
                $seen[] = $message->number;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(\array_map(static fn(int $number): Deposit => new Deposit('a', $number), \range(1, 5)));
            // As one whose lock has expired while it stalls, or whose end the broker has not noticed.
            $before = $transport->consume(self::QUEUE, 1);
            while ($before->next(1) === []) {
                delay(0.01);
            }
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            delay(1.0);
            self::assertSame([], $seen);
            $before->close();
            while (\count($seen) < 5) {
                delay(0.01);
            }
            $bus->stop();
            $consumer->await();

            self::assertSame(\range(1, 5), $seen);
            $bus->close();
            $database->close();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testEachKeyIsHandledInOrderAndNothingIsLostDespiteFailures(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $seed = \random_int(1, 1_000_000);
            \mt_srand($seed);
            $seen = $failures = [];
            $bus = Bus::connect($transport, $database, new BusOptions(retry: new Retry()))->handlers(self::accounts(static function (object $message) use (&$seen, &$failures): void {
                delay(\mt_rand(0, 2) / 1000);
                $name = "{$message->account} {$message->number}";
                if (($failures[$name] ?? 0) < 2 && \mt_rand(1, 100) <= 8) {
                    $failures[$name] = ($failures[$name] ?? 0) + 1;
                    throw new \DomainException('once in a while');
                }
                $seen[$message->account][] = $message->number;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::interleaved(keys: 25, messages: 20));
            $consumer = async(static fn() => $bus->consume(self::QUEUE, concurrency: 16, options: new ConsumeOptions(signals: false)));
            while (\array_sum(\array_map('count', $seen)) < 500) {
                $bus->queue(self::QUEUE)->deadLetters()->count() > 0 && $bus->queue(self::QUEUE)->deadLetters()->retry();
                delay(0.05);
            }
            // A key whose last message was replayed is free a moment later.
            while ($bus->queue(self::QUEUE)->blockedKeys() !== []) {
                delay(0.01);
            }
            $bus->stop();
            $consumer->await();

            foreach ($seen as $account => $numbers) {
                self::assertSame(\range(1, 20), $numbers, "account {$account}, seed {$seed}");
            }
            self::assertNotSame([], $failures);
            self::assertSame([[], 0, 0], [$bus->queue(self::QUEUE)->blockedKeys(), $bus->queue(self::QUEUE)->deadLetters()->count(), $bus->queue(self::QUEUE)->depth()]);
            $bus->close();
            $database->close();
        }, 240.0);
    }

    public function testAMessageThatCannotBeDeadLetteredHoldsItsKeyUntilItCan(): void
    {
        $this->inRuntime(function (): void {
            $spy = new SpyTransport(new Memory());
            $spy->deadLetteringFails = 1;
            $seen = [];
            $bus = Bus::connect($spy, Database::connect($this->dsn()))->handlers(self::accounts(static function (object $message) use (&$seen): void {
                $seen[] = $message->number;
                if ($message->number === 1) {
                    throw new \DomainException('no');
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll([new Deposit('a', 1), new Deposit('a', 2)]);
            self::drain($bus);

            self::assertSame([1, 1], $seen);
            self::assertSame([1, 1], [$bus->queue(self::QUEUE)->deadLetters()->count(), $bus->queue(self::QUEUE)->blockedKeys()[0]->waiting]);
        });
    }

    public function testAWaitingMessageWhoseHandlerWasRemovedIsDeadLetteredInItsTurn(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('sqlite');
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(static fn() => throw new \DomainException('no')));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll([new Deposit('a', 1), new Deposit('a', 2)]);
            self::drain($bus);

            $without = Bus::connect(Sqlite::on($database), $database)->handlers(self::storing(static fn() => null));
            $without->queue(self::QUEUE)->releaseKey('account:a');
            $consumer = async(static fn() => $without->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            while ($without->queue(self::QUEUE)->deadLetters()->count() < 2) {
                delay(0.05);
            }
            $without->stop();
            $consumer->await();
            self::assertSame(NoHandlerException::class, $without->queue(self::QUEUE)->deadLetters()->peek()[1]->errorClass());
        });
    }

    public function testTheCommandsShowAndReleaseBlockedKeys(): void
    {
        \putenv("WEFT_TEST_FILE={$this->directory}/ordered.db");
        $fixture = \dirname(__DIR__) . '/Cli/Fixtures/ordered.php';
        try {
            run(static function () use ($fixture): void {
                $bus = (require $fixture)();
                $bus->queue(self::QUEUE)->declare();
                $bus->sendAll([new Deposit('a', 1), new Deposit('a', 2), new Deposit('b', 2)]);
                self::drain($bus);
                $bus->close();
            });
            $counted = Weft::run(['queues', $fixture, self::QUEUE])->output;
            self::assertMatchesRegularExpression('/\| dead letters \| blocked keys \| waiting for a key \| paused \|/', $counted);
            self::assertMatchesRegularExpression('/' . self::QUEUE . ' +\| 0 +\| 1 +\| 1 +\| 1 +\|  +\|/', $counted);
            $shown = Weft::run(['keys', $fixture, self::QUEUE]);
            self::assertSame(0, $shown->exitCode, $shown->errors);
            self::assertMatchesRegularExpression('/account:a +\| [\da-f-]{36} \| \d{4}-\d\d-\d\dT[\d:+]+ \| 1 +\| no +\|/', $shown->output);
            self::assertStringNotContainsString('account:b', $shown->output);
            self::assertSame([1, "The key account:b is not blocked.\n"], [($run = Weft::run(['keys:release', $fixture, self::QUEUE, 'account:b']))->exitCode, $run->errors]);
            self::assertSame([0, "released\n"], [($run = Weft::run(['keys:release', $fixture, self::QUEUE, 'account:a']))->exitCode, $run->output]);
            self::assertStringContainsString('| yes', Weft::run(['keys', $fixture, self::QUEUE])->output);
        } finally {
            \putenv('WEFT_TEST_FILE');
        }
    }

    public function testAConsumerThatLosesItsTurnStopsAtOnceAndStandsByAgain(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $database = Database::connect($this->dsn());
            $seen = [];
            $bus = Bus::connect('memory:', $database, new BusOptions(logger: $logger))->handlers(new class ($seen) {
                public function __construct(private array &$seen) {}

                #[CommandHandler]
                public function deposit(Deposit $command, Transaction $transaction): void
                {
                    delay(0.01);
                    $transaction->execute('INSERT INTO deposits VALUES (?)', [$command->number]);
                    $this->seen[] = $command->number;
                }
            });
            $database->execute('CREATE TABLE deposits (number INTEGER)');
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(\array_map(static fn(int $number): Deposit => new Deposit('a', $number), \range(1, 120)));
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            while (\count($seen) < 20) {
                delay(0.005);
            }
            $database->execute("UPDATE weft_locks SET owner = 'another', expires_at = unixepoch('subsec') + 3600 WHERE name = 'queue customers'");
            while (!$logger->hasRecord('error', 'The lock of the ordered queue was lost')) {
                delay(0.01);
            }
            while ($bus->admin()->stats()->inFlight > 0) {
                delay(0.01);
            }
            $then = \count($seen);
            delay(0.3);
            self::assertCount($then, $seen, 'it has stopped');
            $database->execute("UPDATE weft_locks SET expires_at = 0 WHERE name = 'queue customers'");
            // What was cancelled with the turn is seen twice and stored once.
            while ($database->execute('SELECT count(*) FROM deposits')->value() < 120) {
                delay(0.02);
            }
            $bus->stop();
            $consumer->await();

            self::assertSame(\range(1, 120), $database->execute('SELECT number FROM deposits ORDER BY rowid')->column());
        }, 240.0);
    }

    public function testAConsumerThatIsCancelledWhileItTakesItsTurnLeavesItToOthers(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $take = static function (string $queue) use ($database): bool {
                $lock = new ActiveConsumerLock($database, $queue, new NullLogger());

                try {
                    return $lock->await(false, static function (): bool {
                        delay(0.0);

                        return false;
                    }, static function (): void {});
                } finally {
                    $lock->release();
                }
            };
            $take('warm');
            foreach (\range(1, 60) as $i) {
                try {
                    // Cancelled at another of its statements each time.
                    timeout(0.0001 * $i, static fn(): bool => $take("queue {$i}"));
                } catch (TimeoutException) {
                }
            }
            delay(0.1);

            self::assertSame([], $database->execute("SELECT name FROM weft_locks WHERE owner <> ''")->column());
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testTwoMessagesWithOneIdBehindABlockedKeyAreNotLost(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(static function (object $message): void {
                $message->number === 1 && throw new \DomainException('no');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new Deposit('a', 1));
            self::drain($bus);
            $transport->put(self::QUEUE, \array_map(static fn(int $number): Outgoing => new Outgoing(Deposit::class, "{\"account\":\"a\",\"number\":{$number}}", [
                Header::MESSAGE_ID => 'same', Header::ORDER_KEY => 'account:a', Header::KIND => 'command',
            ]), [2, 3, 2]));
            self::drain($bus);

            self::assertSame(1, $bus->queue(self::QUEUE)->blockedKeys()[0]->waiting);
            $letters = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame(['{"account":"a","number":1}', '{"account":"a","number":3}'], \array_map(static fn($letter): string => $letter->body, $letters));
            self::assertSame(DuplicateMessageIdException::class, $letters[1]->errorClass());
            $bus->close();
            $database->close();
        });
    }

    public function testAMessageThatTheDatabaseNeverStoresDoesNotBlockThoseBehindIt(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $transport = new Memory();
            $seen = [];
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(static function (object $message) use (&$seen): void {
                $seen[] = "{$message->account}{$message->number}";
                $message->number === 1 && throw new \DomainException('no');
            }));
            $queue = $bus->queue(self::QUEUE);
            $queue->declare();
            $bus->send(new Deposit('a', 1));
            self::drain($bus);
            // Longer than the column.
            $transport->put(self::QUEUE, [new Outgoing(\str_repeat('t', 250), '{}', [Header::MESSAGE_ID => 'too long', Header::ORDER_KEY => 'account:a', Header::KIND => 'command'])]);
            $bus->sendAll([new Deposit('a', 2), new Deposit('b', 3)]);
            timeout(Timing::DEADLINE, static fn(): int => self::drain($bus));

            self::assertSame([['a1', 'b3'], 1], [$seen, $queue->blockedKeys()[0]->waiting]);
            $letters = $queue->deadLetters()->peek();
            self::assertSame([1 => 'too long'], \array_slice(\array_map(static fn($letter): string => $letter->messageId(), $letters), 1, preserve_keys: true));
            self::assertSame(DataException::class, $letters[1]->errorClass());
            $bus->close();
            $database->close();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testKeysThatAreBlockedAtTheSameTimeDoNotFailEachOther(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(static function (): void {}));
            $bus->queue(self::QUEUE)->declare();
            self::drain($bus);
            $keys = new BlockedKeys($database);
            for ($round = 0; $round < 30; ++$round) {
                $blocks = \array_map(static fn(int $i): \Closure => static fn() => $keys->block(self::QUEUE, "$round $i", 'message'), \range(1, 6));
                all($blocks);
            }

            self::assertCount(180, $keys->blockers(self::QUEUE));
            $bus->close();
            $database->close();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAKeyOfAnyBytesBlocksAndIsReleased(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $seen = [];
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(static function (object $message) use (&$seen): void {
                $seen[] = $message->number;
                $message->number === 1 && throw new \DomainException('no');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll([new Deposit("a\0b", 1), new Deposit("a\0b", 2)]);
            $foreign = static fn(int $number): Outgoing => new Outgoing(Deposit::class, "{\"account\":\"c\",\"number\":{$number}}", [
                Header::MESSAGE_ID => "foreign {$number}", Header::ORDER_KEY => "c\0\xff" . \str_repeat('x', 300), Header::KIND => 'command',
            ]);
            $transport->put(self::QUEUE, [$foreign(1), $foreign(2)]);
            self::drain($bus);

            $blocked = $bus->queue(self::QUEUE)->blockedKeys();
            self::assertSame([1, 1], \array_map(static fn(BlockedKey $key): int => $key->waiting, $blocked));
            self::assertSame([1, 1], $seen);
            foreach ($blocked as $key) {
                self::assertTrue($bus->queue(self::QUEUE)->releaseKey($key->key));
            }
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            while ($bus->queue(self::QUEUE)->blockedKeys() !== []) {
                delay(0.05);
            }
            $bus->stop();
            $consumer->await();
            self::assertSame([[1, 1, 2, 2], 2], [$seen, $bus->queue(self::QUEUE)->deadLetters()->count()]);
            $bus->close();
            $database->close();
        });
    }

    public function testMoreThanOneConsumerCanHaveIsRefusedWhereThereIsAnOrder(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('for which the prefetch is at most 65535, got 65536');
        Bus::connect('memory:', Database::connect($this->dsn()))->handlers(self::accounts(static fn() => null))->consume(self::QUEUE, options: new ConsumeOptions(prefetch: 65_536));
    }

    public function testMessagesWithoutKeyAreNotOrdered(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('memory');
            $running = $most = 0;
            $bus = Bus::connect($transport, $database)->handlers(self::accounts(static function () use (&$running, &$most): void {
                $most = \max($most, ++$running);
                while ($most <= 5) {
                    delay(0.01);
                }
                $running--;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(\array_map(static fn(int $number): Deposit => new Deposit(null, $number), \range(1, 10)));
            self::drain($bus);

            self::assertGreaterThan(5, $most);
        });
    }

    public function testASenderMayChooseTheKeyOfAnOrderedMessageAndOfNoOther(): void
    {
        $this->inRuntime(function (): void {
            $spy = new SpyTransport(new Memory());
            $keys = [];
            $spy->before = static function (string $what, array $messages) use (&$keys): void {
                \array_push($keys, ...\array_map(static fn(Outgoing $sent): string => "{$what} {$sent->headers[Header::ORDER_KEY]}", $messages));
            };
            $bus = Bus::connect($spy, Database::connect($this->dsn()))->handlers(self::accounts(static fn() => null), self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new Deposit('a', 1), new SendOptions(key: 'shared'));
            $bus->send(new Deposit('a', 1));
            $bus->sendAll([new Deposit('a', 1)], new SendOptions(key: 'shared', confirm: false));
            self::assertSame(['publish account:shared', 'publish account:a', 'publish unconfirmed account:shared'], $keys);

            $this->expectException(\ValueError::class);
            $this->expectExceptionMessage('Message ' . StoreCustomer::class . ' is sent with the ordering key "shared", but its class has no #[OrderedBy]');
            $bus->send(self::customer(1), new SendOptions(key: 'shared'));
        });
    }

    public function testAnInvalidKeyAndAnOrderWithoutADatabaseAreRefused(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:')->handlers(self::accounts(static fn() => null));
            try {
                $bus->consume(self::QUEUE, options: new ConsumeOptions(stopWhenEmpty: true));
                self::fail('there is no database');
            } catch (\Error $error) {
                self::assertSame('Queue "customers" has messages marked #[OrderedBy], which need a database: pass one to Bus::connect()', $error->getMessage());
            }
            $this->expectException(InvalidMessageClassError::class);
            $this->expectExceptionMessage('#[OrderedBy] names the property $price of type float; a key is a string, an int or a backed enum');
            Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(classes: [Priced::class])));
        });
    }

    private static function accounts(\Closure $handle): object
    {
        return new class ($handle) {
            public function __construct(private readonly \Closure $handle) {}

            #[CommandHandler]
            public function deposit(Deposit $command): void
            {
                ($this->handle)($command);
            }

            #[EventListener]
            public function withdraw(Withdraw $event): void
            {
                ($this->handle)($event);
            }
        };
    }

    /** @return iterable<Deposit> */
    private static function interleaved(int $keys, int $messages): iterable
    {
        for ($number = 1; $number <= $messages; $number++) {
            for ($key = 1; $key <= $keys; $key++) {
                yield new Deposit("a{$key}", $number);
            }
        }
    }

    /** @return array{Transport, Database} */
    private function place(string $place): array
    {
        if ($place === 'servers') {
            return [RabbitMq::connect($this->brokerDsn()), $this->database()];
        }
        if ($place === 'postgres') {
            $database = $this->database();

            return [Postgres::on($database), $database];
        }
        if ($place === 'mariadb') {
            return [new Memory(), $this->mariaDb()];
        }
        $database = Database::connect($this->dsn());

        return [$place === 'sqlite' ? Sqlite::on($database) : new Memory(), $database];
    }
}

#[OrderedBy('account')]
final class Booking
{
    public function __construct(public readonly string $account, public readonly int $number) {}
}

#[OrderedBy('price')]
final class Priced
{
    public float $price = 1.0;
}
