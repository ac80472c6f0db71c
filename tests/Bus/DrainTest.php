<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\DeliveryGuarantee;
use Weft\Bus\Retry;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Extension;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\async;
use function Weft\delay;

/** Workers that are told to stop while they have more to do than they can. */
final class DrainTest extends BusTestCase
{
    use Servers;

    private const COMMANDS = 3_000;
    private const STOPS = 3;

    /** Seconds a worker that stops may take on a busy machine: far less than the ten minutes of a handler that is not cancelled. */
    private const STOP_TIMEOUT = 60.0;

    /** @var resource|null */
    private $process = null;

    protected function tearDown(): void
    {
        if ($this->process !== null) {
            \proc_terminate($this->process, 9);
            \proc_close($this->process);
        }
    }

    /** @return iterable<string, array{string, DeliveryGuarantee}> */
    public static function brokers(): iterable
    {
        yield 'RabbitMQ' => ['rabbitmq', DeliveryGuarantee::AtLeastOnce];
        yield 'RabbitMQ, recorded' => ['rabbitmq', DeliveryGuarantee::Transactional];
        yield 'PostgreSQL' => ['postgres', DeliveryGuarantee::AtLeastOnce];
        yield 'PostgreSQL, recorded' => ['postgres', DeliveryGuarantee::Transactional];
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testHandlersInFlightFinishAndNothingIsHandledTwiceOrCountedAsAnAttempt(string $kind, DeliveryGuarantee $guarantee): void
    {
        $this->inRuntime(function () use ($kind, $guarantee): void {
            $database = $this->database();
            $broker = $kind === 'postgres' ? $this->databaseDsn() : $this->brokerDsn();
            $bus = Bus::connect($broker, $database)->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(self::COMMANDS));
            for ($stop = 1; $stop <= self::STOPS; $stop++) {
                $this->start($broker, $guarantee);
                $before = self::effects($database, 'done');
                while (self::effects($database, 'done') < $before + 400) {
                    delay(0.01);
                }
                [$code, $seconds] = $this->terminate();

                self::assertSame(0, $code);
                self::assertLessThan(self::STOP_TIMEOUT, $seconds);
                self::assertSame(self::effects($database, 'begun'), self::effects($database, 'done'), 'what had begun is done');
                self::assertGreaterThan(0, $bus->queue(self::QUEUE)->depth(), 'there was more to do');
            }
            $this->finish($broker, $guarantee, $database);

            self::assertSame([self::COMMANDS, 0], [self::effects($database, 'begun'), self::effects($database, 'counted')]);
            self::assertSame([0, 0, 0], [$bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count(), self::noted($database)]);
            $bus->close();
            $database->close();
        }, deadline: 240.0);
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testASecondSignalEndsItAtOnceAndNothingIsLost(string $kind, DeliveryGuarantee $guarantee): void
    {
        $this->inRuntime(function () use ($kind, $guarantee): void {
            $database = $this->database();
            $broker = $kind === 'postgres' ? $this->databaseDsn() : $this->brokerDsn();
            $bus = Bus::connect($broker, $database)->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(500));
            $this->start($broker, $guarantee, seconds: 600.0);
            // Everything that may run runs, until its time is over in ten minutes.
            while (self::effects($database, 'begun') < 50) {
                delay(0.02);
            }
            \proc_terminate($this->process, \SIGTERM);
            while (self::effects($database, 'told') === 0) {
                delay(0.02);
            }
            self::assertTrue(\proc_get_status($this->process)['running'], 'what is in flight may finish');
            [$code, $seconds] = $this->terminate();

            self::assertSame([0, 0], [$code, self::effects($database, 'done')]);
            self::assertLessThan(self::STOP_TIMEOUT, $seconds);
            while ($bus->queue(self::QUEUE)->depth() < 500) {
                delay(0.02);
            }
            $this->finish($broker, $guarantee, $database, 500);
            self::assertSame([0, 0, 0], [$bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count(), self::noted($database)]);
            $bus->close();
            $database->close();
        }, deadline: 240.0);
    }

    /** @return iterable<string, array{float|null, float|null}> */
    public static function graces(): iterable
    {
        yield 'of the stop' => [null, 0.05];
        yield 'of consume()' => [0.05, null];
        yield 'the shorter one' => [600.0, 0.05];
    }

    /** @dataProvider graces */
    #[DataProvider('graces')]
    public function testAHandlerThatOutlivesTheGraceOfAStopIsCancelledAndItsMessageIsRedelivered(?float $ofConsume, ?float $ofStop): void
    {
        $this->inRuntime(function () use ($ofConsume, $ofStop): void {
            $seen = [];
            $first = true;
            $bus = Bus::connect('memory:', options: new BusOptions(retry: new Retry()))->handlers(self::storing(static function (StoreCustomer $command) use (&$seen, &$first): void {
                $first && $command->id === '2' && delay(600.0);
                $seen[] = $command->id;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false, grace: $ofConsume)));
            while (\count($seen) < 2) {
                delay(0.001);
            }
            $bus->stop($ofStop);
            $consuming->await();

            self::assertSame([['1', '3'], 1], [$seen, $bus->queue(self::QUEUE)->depth()]);
            $first = false;
            self::drain($bus);
            self::assertSame([['1', '3', '2'], 0, 0], [$seen, $bus->admin()->stats()->failed, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testANegativeGracePeriodIsRefused(): void
    {
        $this->inRuntime(function (): void {
            $this->expectException(\ValueError::class);
            $this->expectExceptionMessage('The grace period of a consumer must be at least 0 seconds, got -0.5');
            Bus::connect('memory:')->stop(-0.5);
        });
    }

    public function testASecondSignalEndsItThoughTheBrokerIsSilent(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $dsn = $this->brokerDsn();
            $proxy = new Proxy('127.0.0.1', (int) \parse_url($dsn, \PHP_URL_PORT));
            $bus = Bus::connect($dsn, $database)->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(50));
            $this->start((string) \preg_replace('~:\d+/~', ":{$proxy->port}/", $dsn), DeliveryGuarantee::Transactional, seconds: 600.0);
            while (self::effects($database, 'begun') < 50) {
                delay(0.02);
            }
            $proxy->hold();
            \proc_terminate($this->process, \SIGTERM);
            while (self::effects($database, 'told') === 0) {
                delay(0.02);
            }
            [$code, $seconds] = $this->terminate();

            self::assertSame(0, $code);
            // Five for the channel, and five for each of two connections.
            self::assertLessThan(15.0 + self::STOP_TIMEOUT, $seconds);
            $proxy->stop();
            while ($bus->queue(self::QUEUE)->depth() < 50) {
                delay(0.02);
            }
            $bus->close();
            $database->close();
        }, deadline: 240.0);
    }

    /** Handles what is left: each message ends exactly once. */
    private function finish(string $broker, DeliveryGuarantee $guarantee, Database $database, int $messages = self::COMMANDS): void
    {
        $this->start($broker, $guarantee);
        while (self::effects($database, 'done') < $messages) {
            delay(0.05);
        }
        $this->terminate();
        self::assertSame($messages, self::effects($database, 'done'));
        self::assertSame($messages, $database->execute("SELECT count(DISTINCT id) FROM effects WHERE listener = 'done'")->value());
    }

    private function start(string $broker, DeliveryGuarantee $guarantee, float $seconds = 0.05): void
    {
        $command = [\PHP_BINARY, '-d', 'extension=' . Extension::library(), __DIR__ . '/Fixtures/draining.php', $broker, $this->databaseDsn(), $guarantee->name, (string) $seconds];
        $process = \proc_open($command, [1 => \STDERR, 2 => \STDERR], $pipes);
        self::assertIsResource($process);
        $this->process = $process;
    }

    /** @return array{int, float} exit code, and after how many seconds */
    private function terminate(): array
    {
        \assert($this->process !== null);
        \proc_terminate($this->process, \SIGTERM);
        $started = \microtime(true);
        while (($status = \proc_get_status($this->process))['running']) {
            delay(0.005);
        }
        \proc_close($this->process);
        $this->process = null;

        return [$status['exitcode'], \microtime(true) - $started];
    }

    /** Attempts that count towards a crash. */
    private static function noted(Database $database): int
    {
        return $database->execute('SELECT count(*) FROM weft_redeliveries')->value();
    }

    private static function effects(Database $database, string $what): int
    {
        return $database->execute('SELECT count(*) FROM effects WHERE listener = ?', [$what])->value();
    }
}
