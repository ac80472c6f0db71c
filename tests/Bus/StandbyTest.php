<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Transport\Memory;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\RecordingLogger;

use function Weft\async;
use function Weft\delay;
use function Weft\timeout;

require_once __DIR__ . '/Fixtures/ordered.php';

/** Processes that wait for their turn to consume a queue of ordered messages. */
final class StandbyTest extends BusTestCase
{
    use TemporaryDatabase;

    /** Seconds in which a consumer returns whose time is over, on a busy machine. */
    private const RETURNS_WITHIN = 60.0;

    /** @dataProvider ends */
    #[DataProvider('ends')]
    public function testAStandbyReturnsWhenItsTimeIsOverAndReportsOnceWhomItWaitsFor(ConsumeOptions $options): void
    {
        $this->inRuntime(function () use ($options): void {
            $database = Database::connect($this->dsn());
            $transport = new Memory();
            $active = self::bus($transport, $database, new RecordingLogger());
            $active->queue(self::QUEUE)->declare();
            $consumer = async(static fn(): int => $active->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            while (!$transport->isConsumed(self::QUEUE)) {
                delay(0.01);
            }
            $logger = new RecordingLogger();
            $standby = self::bus($transport, $database, $logger);

            self::assertSame(0, timeout(self::RETURNS_WITHIN, static fn(): int => $standby->consume(self::QUEUE, options: $options)));
            self::assertSame(
                ['notice Queue customers has ordered messages and is consumed by process ' . \getmypid() . ' on ' . \substr((string) \gethostname(), 0, 30) . '; this process stands by'],
                self::about('stands by', $logger),
            );
            $active->stop();
            $consumer->await();
            $database->close();
        });
    }

    /** @return iterable<string, array{ConsumeOptions}> */
    public static function ends(): iterable
    {
        yield 'stopAfter' => [new ConsumeOptions(stopAfter: 0.6, signals: false)];
        yield 'stopWhenEmpty' => [new ConsumeOptions(stopWhenEmpty: true, signals: false)];
    }

    public function testAConsumerWithoutTheLockIsWaitedForUntilTheTimeIsOverAndReportedOnce(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $transport = new Memory();
            $logger = new RecordingLogger();
            $bus = self::bus($transport, $database, $logger);
            $bus->queue(self::QUEUE)->declare();
            $foreign = $transport->consume(self::QUEUE, 1);
            $bus->send(new Deposit('a', 1));

            self::assertSame(0, timeout(self::RETURNS_WITHIN, static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(stopAfter: 5.0, signals: false))));
            self::assertCount(1, self::about('still has a consumer that does not hold the lock "queue customers"', $logger));
            $foreign->close();
            self::assertSame(1, self::drain($bus));
            self::assertSame([], $database->execute("SELECT owner FROM weft_locks WHERE owner <> ''")->column());
            $database->close();
        });
    }

    public function testALimitHoldsAlsoWhenTheTurnIsLostMeanwhile(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $logger = new RecordingLogger();
            $handled = 0;
            $bus = self::bus(new Memory(), $database, $logger, static function () use (&$handled): void {
                $handled++;
                delay(0.01);
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(\array_map(static fn(int $number): Deposit => new Deposit('a', $number), \range(1, 600)));
            $consumer = async(static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(limit: 300, signals: false)));
            while ($handled < 20) {
                delay(0.005);
            }
            $database->execute("UPDATE weft_locks SET owner = 'another', expires_at = unixepoch('subsec') + 3600 WHERE name = 'queue customers'");
            while (!$logger->hasRecord('error', 'The lock of the ordered queue was lost')) {
                delay(0.01);
            }
            $database->execute("UPDATE weft_locks SET expires_at = 0 WHERE name = 'queue customers'");

            self::assertSame(300, $consumer->await());
            $database->close();
        });
    }

    private static function bus(Memory $transport, Database $database, RecordingLogger $logger, ?\Closure $handle = null): Bus
    {
        return Bus::connect($transport, $database, new BusOptions(logger: $logger))->handlers(new class ($handle ?? static function (): void {}) {
            public function __construct(private readonly \Closure $handle) {}

            #[CommandHandler]
            public function deposit(Deposit $command): void
            {
                ($this->handle)();
            }
        });
    }

    /** @return list<string> */
    private static function about(string $what, RecordingLogger $logger): array
    {
        return \array_values(\array_filter($logger->lines, static fn(string $message): bool => \str_contains($message, $what)));
    }
}
