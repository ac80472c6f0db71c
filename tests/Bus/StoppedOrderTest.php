<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Bus\Transport\Sqlite;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

use function Weft\async;
use function Weft\delay;

require_once __DIR__ . '/Fixtures/ordered.php';

/** Consumers of messages that are in order, stopped cleanly while they work, as every deployment does it. */
final class StoppedOrderTest extends BusTestCase
{
    use Servers;
    use TemporaryDatabase;

    private const KEYS = 7;
    private const MESSAGES = 100;
    private const STOPS = 4;
    private const HANDLED_PER_RUN = 60;

    /** @dataProvider transports */
    #[DataProvider('transports')]
    public function testTheNextConsumerGoesOnInOrderWithEachMessageOnce(string $transport): void
    {
        $this->inRuntime(function () use ($transport): void {
            $database = $transport === 'postgres' ? $this->database() : Database::connect($this->dsn());
            $seen = [];
            $bus = Bus::connect($this->transport($transport, $database), $database)->handlers(new class ($seen) {
                public function __construct(private array &$seen) {}

                #[CommandHandler]
                public function deposit(Deposit $command): void
                {
                    delay(\mt_rand(0, 4) / 1000);
                    $this->seen[] = $command;
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll((static function (): iterable {
                for ($number = 1; $number <= self::MESSAGES; $number++) {
                    for ($key = 1; $key <= self::KEYS; $key++) {
                        yield new Deposit("a{$key}", $number);
                    }
                }
            })());
            for ($stop = 1; $stop <= self::STOPS; $stop++) {
                $enough = \count($seen) + self::HANDLED_PER_RUN;
                $consumer = async(static fn(): int => $bus->consume(self::QUEUE, 4, new ConsumeOptions(prefetch: 40, signals: false)));
                while (\count($seen) < $enough) {
                    delay(0.001);
                }
                $bus->stop();
                $consumer->await();
            }
            self::assertLessThan(self::KEYS * self::MESSAGES, \count($seen), 'they are stopped while they work');
            while (\count($seen) < self::KEYS * self::MESSAGES) {
                $bus->consume(self::QUEUE, 4, new ConsumeOptions(prefetch: 40, stopWhenEmpty: true));
            }

            $numbers = [];
            foreach ($seen as $deposit) {
                $numbers[$deposit->account][] = $deposit->number;
            }
            foreach ($numbers as $account => $ofAccount) {
                self::assertSame(\range(1, self::MESSAGES), $ofAccount, "account {$account}");
            }
            $bus->close();
            $database->close();
        });
    }

    /** @return iterable<string, array{string}> */
    public static function transports(): iterable
    {
        yield 'classic queue' => ['classic'];
        yield 'quorum queue' => ['quorum'];
        yield 'PostgreSQL' => ['postgres'];
        yield 'SQLite' => ['sqlite'];
        yield 'memory' => ['memory'];
    }

    private function transport(string $name, Database $database): Transport
    {
        return match ($name) {
            'classic' => RabbitMq::connect($this->brokerDsn()),
            'quorum' => RabbitMq::connect($this->brokerDsn(), queue: RabbitMqQueue::quorum()),
            'postgres' => Postgres::on($database),
            'sqlite' => Sqlite::on($database),
            default => new Memory(),
        };
    }
}
