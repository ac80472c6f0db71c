<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Internal\Postgres;
use Weft\Bus\Internal\Requests\AbandonedReplyQueues;
use Weft\Bus\Internal\Sqlite;
use Weft\Bus\QueryHandler;
use Weft\Bus\RequestFailedException;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\ForgetCustomer;
use Weft\Tests\Bus\Fixtures\PostgresSchema;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

use function Weft\async;

final class AbandonedReplyQueuesTest extends BusTestCase
{
    use PostgresSchema;
    use TemporaryDatabase;

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTheReplyQueueOfAProcessThatIsGoneIsDeletedAtTheSecondCheckAndThoseOfOthersStay(\Closure $dsn, \Closure $abandoned): void
    {
        $this->inRuntime(function () use ($dsn, $abandoned): void {
            $bus = $this->asking($dsn($this));
            $database = Database::connect($dsn($this));
            $queues = static fn(): array => $database->execute("SELECT name FROM weft_queues WHERE name LIKE 'weft.replies.%'")->column();
            $live = $queues();
            self::assertCount(1, $live, 'it has no dead-letter queue');
            // That of a process that is gone.
            $id = $database->execute('SELECT max(id) FROM weft_queues')->value() + 1;
            $database->execute("INSERT INTO weft_queues (id, name) VALUES (?, 'weft.replies.gone')", [$id]);
            $check = $abandoned($database);

            $check->check();
            self::assertEqualsCanonicalizing([...$live, 'weft.replies.gone'], $queues(), 'its process may be about to consume it');
            $check->check();
            self::assertSame($live, $queues());
            self::assertSame('answer', $bus->request(new ForgetCustomer('1')));
            $bus->close();
            self::assertSame([], $queues());
            $database->close();
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testABusWhoseReplyQueueWasDeletedOpensAnother(\Closure $dsn): void
    {
        $this->inRuntime(function () use ($dsn): void {
            $bus = $this->asking($dsn($this));
            $database = Database::connect($dsn($this));
            $database->execute("DELETE FROM weft_queues WHERE name LIKE 'weft.replies.%'");
            try {
                $bus->request(new ForgetCustomer('1'));
                self::fail('answered');
            } catch (RequestFailedException $failed) {
                self::assertStringContainsString('Replies can no longer be received', $failed->getMessage());
            }
            self::assertSame('answer', $bus->request(new ForgetCustomer('1')));
            $bus->close();
            $database->close();
        });
    }

    /** @return iterable<string, array{\Closure(self): string}> */
    public static function places(): iterable
    {
        foreach (self::databases() as $name => [$dsn]) {
            yield $name => [$dsn];
        }
    }

    /** @return iterable<string, array{\Closure(self): string, \Closure(Database): AbandonedReplyQueues}> */
    public static function databases(): iterable
    {
        yield 'PostgreSQL' => [static fn(self $test): string => $test->databaseDsn(), static function (Database $database): AbandonedReplyQueues {
            $queues = new Postgres\Queues($database);

            return new AbandonedReplyQueues($queues->unconsumedReplyQueues(...), $queues->drop(...));
        }];
        yield 'SQLite' => [static fn(self $test): string => $test->dsn(), static fn(Database $database): AbandonedReplyQueues => Sqlite\Store::open($database)->abandoned];
    }

    /** A bus that consumes its own queries, and has asked one. */
    private function asking(string $dsn): Bus
    {
        $bus = Bus::connect($dsn)->handlers(new class {
            #[QueryHandler]
            public function answer(ForgetCustomer $query): string
            {
                return 'answer';
            }
        });
        $bus->queue(self::QUEUE)->declare();
        async(static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
        self::assertSame('answer', $bus->request(new ForgetCustomer('1')));

        return $bus;
    }
}
