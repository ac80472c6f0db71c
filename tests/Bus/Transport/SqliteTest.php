<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Weft\Bus\Transport;
use Weft\Bus\Transport\Sqlite;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

use function Weft\delay;

final class SqliteTest extends TransportConformance
{
    use DeletedQueues;
    use TemporaryDatabase;

    protected function connect(): Transport
    {
        return Sqlite::connect($this->dsn());
    }

    public function testMessagesSurviveClosingAndOpeningTheFile(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1'), $this->message('a', '2')]);
            $consumer = $transport->consume($this->queue(), 10);
            $consumer->ack($this->take($consumer, 2)[0]);
            $transport->close();

            $again = $this->connect();
            self::assertSame(['2'], $this->drain($again));
            $again->close();
        });
    }

    public function testItLivesInTheDatabaseItIsGivenAndDoesNotCloseIt(): void
    {
        $this->on(function (): void {
            $database = Database::connect($this->dsn());
            $transport = Sqlite::connect($this->dsn(), $database);
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $transport->close();

            self::assertSame(1, $database->execute('SELECT count(*) FROM weft_messages')->value());
            $database->close();
        });
    }

    public function testQueuesGetFreeIdsWhenTheNumbersBeginAgain(): void
    {
        $this->on(function (): void {
            $database = Database::connect($this->dsn());
            $transport = Sqlite::connect($this->dsn(), $database);
            $transport->declare($this->queue(), [$this->type('a')]);
            // Two to the power of 23: one for each reply queue of a process, and for each consumer.
            $database->execute("UPDATE sqlite_sequence SET seq = 8388603 WHERE name = 'weft_consumers'");
            $transport->declare($this->queue('b'), [$this->type('b')]);
            $transport->declare($this->queue('c'), [$this->type('c')]);

            $ids = $database->execute('SELECT id FROM weft_queues')->column();
            self::assertCount(6, \array_unique($ids));
            self::assertContains(8_388_606, $ids);
            self::assertLessThanOrEqual(8_388_606, \max($ids));
            $transport->publish([$this->message('a', '1'), $this->message('b', '2'), $this->message('c', '3')]);
            self::assertSame([['1'], ['2'], ['3']], [$this->drain($transport), $this->drain($transport, 'b'), $this->drain($transport, 'c')]);
            $transport->close();
            $database->close();
        });
    }

    public function testAConsumerThatWaitsWritesNothing(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $consumer = $transport->consume($this->queue(), 10);
            $consumer->next(10, wait: 0.05);
            $before = \md5_file("{$this->directory}/customers.db-wal");

            $consumer->next(10, wait: 0.3);

            self::assertSame($before, \md5_file("{$this->directory}/customers.db-wal"));
        });
    }

    public function testRequeuedMessagesComeFirstAndAtMostAsManyAsRequested(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish(\array_map(fn(int $i) => $this->message('a', (string) $i), \range(1, 30)));
            $gone = $transport->consume($this->queue(), 20);
            $this->take($gone, 20);
            $gone->close();

            $consumer = $transport->consume($this->queue(), 30);
            $bodies = [];
            while (\count($bodies) < 30 && ($batch = $consumer->next(3, wait: 30.0)) !== []) {
                self::assertLessThanOrEqual(3, \count($batch));
                \array_push($bodies, ...\array_column($batch, 'body'));
            }
            self::assertSame(\array_map('strval', \range(1, 30)), $bodies);
        });
    }

    public function testNothingIsLeftBehindWhenEverythingWasAcknowledged(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            foreach (\range(1, 3) as $_) {
                $transport->publish(\array_map(fn(int $i) => $this->message('a', (string) $i), \range(1, 20)));
                $this->drain($transport);
            }
            $database = Database::connect($this->dsn());

            self::assertSame([0, 0, 0], \array_map(
                static fn(string $table): int => $database->execute("SELECT count(*) FROM weft_{$table}")->value(),
                ['messages', 'claimed_ranges', 'consumers'],
            ));
            self::assertSame([], \glob("{$this->directory}/customers.db-weft/*"));
            $database->close();
        });
    }

    public function testADatabaseOfAnotherKindIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('needs an SQLite database, got Postgres');

        Sqlite::on(Database::connect('postgres://nobody@localhost/nothing'));
    }
}
