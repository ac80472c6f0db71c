<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\EventListener;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\PostgresSchema;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

use function Weft\delay;

/** Consumers in processes of their own, killed while they work. The broker is in the handlers' database. */
final class KilledConsumersTest extends BusTestCase
{
    use PostgresSchema;
    use TemporaryDatabase;

    /** How many messages consumers hold. */
    private const HELD = ['sqlite' => 'SELECT count(*) FROM weft_claimed_ranges', 'postgres' => 'SELECT count(consumer_id) FROM weft_messages'];
    /** What the queue is filled up with while there is somebody left to kill, so that nobody runs out of work before. */
    private const COMMANDS = 3_000;
    private const KILLS = 6;

    /** @var list<resource> */
    private array $processes = [];

    private string $driver;

    /** @return iterable<string, array{string}> */
    public static function databases(): iterable
    {
        yield 'SQLite' => ['sqlite'];
        yield 'PostgreSQL' => ['postgres'];
    }

    protected function tearDown(): void
    {
        foreach ($this->processes as $process) {
            \proc_terminate($process, 9);
            \proc_close($process);
        }
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testEachEffectHappensExactlyOnceHoweverManyConsumersAreKilled(string $driver): void
    {
        $this->driver = $driver;
        $this->inRuntime(function (): void {
            [$database, $bus] = $this->filled(self::COMMANDS);
            $sent = self::COMMANDS;
            $kills = 0;
            // What the last one killed has held comes back a moment later than the others may find the queue empty.
            while ($kills < self::KILLS || self::rows($database, 'heard') < $sent) {
                if ($kills < self::KILLS && $bus->queue(self::QUEUE)->depth() < self::COMMANDS) {
                    $bus->sendAll(self::customers(self::COMMANDS, from: $sent + 1));
                    $sent += self::COMMANDS;
                }
                while ($this->running() < 3) {
                    $this->start();
                }
                delay(0.15);
                // Only a process that has stored something: others may still be starting.
                $working = \array_intersect($this->pids(), $database->execute('SELECT DISTINCT process FROM customers')->column());
                if ($kills < self::KILLS && $working !== []) {
                    \posix_kill($working[\array_rand($working)], 9);
                    $kills++;
                }
            }
            while ($this->running() > 0) {
                delay(0.05);
            }

            self::assertSame([$sent, $sent], [self::rows($database, 'customers'), self::rows($database, 'heard')]);
            self::assertSame($sent, $database->execute('SELECT count(DISTINCT id) FROM heard')->value());
            self::assertGreaterThan(1, $database->execute('SELECT count(DISTINCT process) FROM customers')->value());
            self::assertSame([0, 0], [$bus->queue(self::QUEUE)->deadLetters()->count(), self::rows($database, 'weft_messages')]);
            $bus->close();
            $database->close();
        }, deadline: 180.0);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testALivingConsumerTakesOverFromAKilledOne(string $driver): void
    {
        $this->driver = $driver;
        $held = self::HELD[$driver];
        $this->inRuntime(function () use ($held): void {
            [$database, $bus] = $this->filled(2_000);
            $this->start(stuckAfter: 100);
            while (self::rows($database, 'customers') < 100 || $database->execute($held)->value() === 0) {
                delay(0.01);
            }
            \posix_kill(\proc_get_status($this->processes[0])['pid'], 9);
            $held = $database->execute($held)->value();
            while (self::rows($database, 'heard') < 2_000) {
                // One that finds the queue empty before the killed one counts as dead ends.
                $this->running() === 0 && $this->start();
                delay(0.05);
            }
            while ($this->running() > 0) {
                delay(0.05);
            }

            self::assertGreaterThan(0, $held, 'the killed one held messages');
            self::assertSame([2_000, 2_000], [self::rows($database, 'customers'), self::rows($database, 'heard')]);
            $bus->close();
            $database->close();
        }, deadline: 180.0);
    }

    /** @return array{Database, Bus} */
    private function filled(int $commands): array
    {
        $database = Database::connect($this->location());
        $database->execute('CREATE TABLE customers (id TEXT PRIMARY KEY, process INTEGER)');
        $database->execute('CREATE TABLE heard (id TEXT)');
        $bus = Bus::connect($this->location(), $database)->handlers(new class {
            #[CommandHandler]
            public function store(StoreCustomer $command): void {}

            #[EventListener]
            public function stored(CustomerStored $event): void {}
        });
        $bus->queue(self::QUEUE)->declare();
        $bus->sendAll(self::customers($commands));

        return [$database, $bus];
    }

    /** @param int $stuckAfter after so many commands its handlers wait for ever; 0 for never */
    private function start(int $stuckAfter = 0): void
    {
        $extension = (string) \getenv('WEFT_EXTENSION');
        $command = [\PHP_BINARY, ...($extension === '' ? self::loaded() : ['-d', "extension={$extension}"]), __DIR__ . '/Fixtures/consumer.php', $this->location(), (string) $stuckAfter];
        $process = \proc_open($command, [1 => \STDERR, 2 => \STDERR], $pipes);
        self::assertIsResource($process);
        $this->processes[] = $process;
    }

    /** @return list<string> the option this process got its extension by */
    private static function loaded(): array
    {
        $arguments = \explode("\0", (string) @\file_get_contents('/proc/self/cmdline'));
        foreach ($arguments as $argument) {
            if (\str_starts_with($argument, 'extension=')) {
                return ['-d', $argument];
            }
        }

        return [];
    }

    private function location(): string
    {
        return $this->driver === 'sqlite' ? $this->dsn() : $this->databaseDsn();
    }

    private function running(): int
    {
        foreach ($this->processes as $index => $process) {
            if (!\proc_get_status($process)['running']) {
                \proc_close($process);
                unset($this->processes[$index]);
            }
        }
        $this->processes = \array_values($this->processes);

        return \count($this->processes);
    }

    /** @return list<int> of processes that run */
    private function pids(): array
    {
        $this->running();

        return \array_map(static fn($process): int => \proc_get_status($process)['pid'], $this->processes);
    }

    private static function rows(Database $database, string $table): int
    {
        return $database->execute("SELECT count(*) FROM {$table}")->value();
    }
}
