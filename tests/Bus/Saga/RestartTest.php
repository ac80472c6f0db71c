<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Saga;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\Saga\SagaStatus;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Tests\Bus\BusTestCase;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Bus\Saga\Fixtures\Begin;
use Weft\Tests\Bus\Saga\Fixtures\Ticker;

use function Weft\delay;

require_once __DIR__ . '/Fixtures/steps.php';

/** Time-outs of sagas whose workers are killed. */
final class RestartTest extends BusTestCase
{
    use Servers;
    use TemporaryDatabase;

    private const SAGAS = 40;
    /** Below the five crashes after which a message is dead-lettered: every crash may hit a message that is handled alone. */
    private const KILLS = 4;

    /** @var resource|null */
    private $worker = null;

    protected function tearDown(): void
    {
        $this->kill();
    }

    public static function places(): iterable
    {
        yield 'SQLite, broker and database in one file' => [static fn(self $test): array => [$test->dsn(), $test->dsn()]];
        yield 'RabbitMQ and PostgreSQL' => [static fn(self $test): array => [$test->brokerDsn(), $test->databaseDsn()]];
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testTimeoutsSurviveWorkersThatAreKilledAndComeOnce(\Closure $places): void
    {
        [$broker, $dsn] = $places($this);
        $this->inRuntime(function () use ($broker, $dsn): void {
            $database = Database::connect($dsn);
            $database->execute('CREATE TABLE ticked (id VARCHAR(64), number INT)');
            $bus = Bus::connect($broker, $database)->handlers(Ticker::class);
            $bus->queue('tickers')->declare();
            for ($i = 1; $i <= self::SAGAS; $i++) {
                $bus->send(new Begin("ticker {$i}"));
            }
            $this->start($broker, $dsn);
            $await = static function (\Closure $condition, string $otherwise) use ($bus, $database): void {
                $until = \microtime(true) + 60.0;
                while (!$condition()) {
                    \microtime(true) < $until || self::fail("{$otherwise}: " . self::state($bus, $database));
                    delay(0.01);
                }
            };
            $completed = static fn(): bool => \count($bus->admin()->sagas()->list(Ticker::class, SagaStatus::Completed)) === self::SAGAS;
            for ($kills = 0; $kills < self::KILLS; $kills++) {
                $before = self::progress($database);
                $await(static fn(): bool => self::progress($database) !== $before || $completed(), "Nothing goes on after {$kills} kills");
                $this->kill();
                $this->start($broker, $dsn);
            }
            $await(static fn(): bool => $completed() && $database->execute('SELECT count(*) FROM ticked')->value() >= Ticker::TICKS * self::SAGAS, 'Something never comes');
            $this->kill();

            self::assertSame(0, $bus->queue('tickers')->deadLetters()->count());
            self::assertSame(\array_fill(0, self::SAGAS * Ticker::TICKS, 1), \array_map('intval', $database->execute('SELECT count(*) AS c FROM ticked GROUP BY id, number')->column()), 'each tick was published once');
            foreach ($bus->admin()->sagas()->list(Ticker::class) as $saga) {
                self::assertSame('{"ticks":' . Ticker::TICKS . '}', $saga->state);
            }
            $bus->close();
            $database->close();
        }, deadline: 300.0);
    }

    private static function progress(Database $database): int
    {
        return (int) $database->execute('SELECT COALESCE(sum(version), 0) FROM weft_sagas')->value();
    }

    /** What a failure is to be understood by. */
    private static function state(Bus $bus, Database $database): string
    {
        $state = ['dead letters' => $bus->queue('tickers')->deadLetters()->count(), 'sagas' => $database->execute('SELECT status, version, count(*) AS c FROM weft_sagas GROUP BY status, version')->rows()];
        foreach (['weft_delayed', 'weft_redeliveries', 'weft_messages', 'weft_claimed_ranges', 'weft_consumers'] as $table) {
            try {
                $state[$table] = $database->execute("SELECT count(*) FROM {$table}")->value();
            } catch (SqlException) {
                // Those of the queue are elsewhere.
            }
        }

        return \json_encode($state, \JSON_THROW_ON_ERROR);
    }

    private function start(string $broker, string $database): void
    {
        $process = \proc_open([\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), __DIR__ . '/Fixtures/ticker.php', $broker, $database], [1 => \STDERR, 2 => \STDERR], $pipes);
        self::assertIsResource($process);
        $this->worker = $process;
    }

    private function kill(): void
    {
        if ($this->worker !== null) {
            \proc_terminate($this->worker, 9);
            \proc_close($this->worker);
            $this->worker = null;
        }
    }
}
