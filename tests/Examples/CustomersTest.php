<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Sql\Database;

/**
 * Runs the customers example as its users do, and stops and kills it in the middle.
 */
final class CustomersTest extends TestCase
{
    private const DEADLINE = 180.0;

    private string $file;

    protected function setUp(): void
    {
        $this->file = \sys_get_temp_dir() . '/weft-customers-' . \getmypid() . '-' . \bin2hex(\random_bytes(4)) . '.sqlite';
    }

    protected function tearDown(): void
    {
        // Its data, and its temporary directory, where the lock of a run with servers is.
        \exec('rm -rf ' . \escapeshellarg($this->file) . '*');
    }

    public function testTheEmbeddedDefaultStoresEveryCommandOnce(): void
    {
        [$code, $output] = $this->finish($this->start('--commands=2000'));

        self::assertSame(0, $code, $output);
        self::assertStringContainsString('✓ 2,000 rows, 2,000 events, 0 lost, 0 duplicates', $output);
        self::assertSame(2000, $this->rows());
    }

    public function testRabbitMqAndPostgreSqlStoreEveryCommandOnce(): void
    {
        // A schema of its own: the tables of an earlier version may be in the database.
        $schema = 'customers_' . \bin2hex(\random_bytes(4));
        $dsn = (string) \getenv('DATABASE_URL');
        $database = Database::connect($dsn);
        $database->execute("CREATE SCHEMA {$schema}");
        try {
            [$code, $output] = $this->finish($this->start('--commands=2000 --broker=rabbitmq', ['DATABASE_URL' => "{$dsn}?options=" . \rawurlencode("-c search_path={$schema}")]));
        } finally {
            $database->execute("DROP SCHEMA {$schema} CASCADE");
            $database->close();
        }

        self::assertSame(0, $code, $output);
        self::assertStringContainsString('✓ 2,000 rows, 2,000 events, 0 lost, 0 duplicates', $output);
    }

    public function testStoppedInTheMiddleItGoesOnWithWhatIsLeft(): void
    {
        [$commands, $code, $output] = $this->interrupt(\SIGINT);
        self::assertSame(130, $code, $output);
        self::assertStringContainsString('Run it again to go on', $output);
        $before = $this->rows();

        [$code, $output] = $this->finish($this->start("--commands={$commands}"));

        self::assertSame(0, $code, $output);
        self::assertStringContainsString(\number_format($before) . ' are stored', $output);
        $all = \number_format($commands);
        self::assertStringContainsString("✓ {$all} rows, {$all} events, 0 lost, 0 duplicates", $output);
    }

    public function testAnotherNumberDuringAnUnfinishedRunIsRefusedWithTheReason(): void
    {
        [$commands] = $this->interrupt(\SIGINT);

        [$code, $output] = $this->finish($this->start('--commands=10'));

        self::assertSame(0, $code, $output);
        self::assertStringContainsString('The 10 commands you asked for are for the next run', $output);
        self::assertStringContainsString('✓ ' . \number_format($commands) . ' rows', $output);
    }

    public function testAFreshStartGivesTheUnfinishedRunUp(): void
    {
        $this->interrupt(\SIGINT);

        [$code, $output] = $this->finish($this->start('--commands=10 --fresh'));

        self::assertSame(0, $code, $output);
        self::assertMatchesRegularExpression('/Emptying the queue: [\d,]+ messages are left of a run that was given up/', $output);
        self::assertStringContainsString('✓ 10 rows, 10 events, 0 lost, 0 duplicates', $output);
    }

    public function testASecondStartOnTheSameDatabaseIsRefusedAndHarmsNothing(): void
    {
        for ($commands = 5_000;; $commands *= 4) {
            $first = $this->start("--commands={$commands}");
            $this->waitForRows(100);
            // It waits while the second one runs.
            \proc_terminate($first[0], \SIGSTOP);
            if ($this->rows() < $commands) {
                break;
            }
            \proc_terminate($first[0], \SIGCONT);
            $this->finish($first);
            $this->startOver($commands);
        }

        [$code, $output] = $this->finish($this->start('--commands=10'));
        self::assertSame(1, $code, $output);
        self::assertStringContainsString('already runs on this database, as process ' . \proc_get_status($first[0])['pid'], $output);

        \proc_terminate($first[0], \SIGCONT);
        [$code, $output] = $this->finish($first);
        self::assertSame(0, $code, $output);
        $all = \number_format($commands);
        self::assertStringContainsString("✓ {$all} rows, {$all} events, 0 lost, 0 duplicates", $output);
    }

    public function testAServerThatIsDownIsOneLineAndNoStackTrace(): void
    {
        [$code, $output] = $this->finish($this->start('--broker=rabbitmq', ['DATABASE_URL' => 'postgres://weft:secret@127.0.0.1:1/weft']));

        self::assertSame(1, $code, $output);
        self::assertStringContainsString('127.0.0.1:1', $output);
        self::assertStringNotContainsString('secret', $output);
        self::assertSame(1, \substr_count($output, "\n"), $output);
    }

    public function testKilledInTheMiddleItLosesAndRepeatsNothing(): void
    {
        [$commands] = $this->interrupt(\SIGKILL);

        [$code, $output] = $this->finish($this->start("--commands={$commands}"));

        self::assertSame(0, $code, $output);
        self::assertStringContainsString('✓ ' . \number_format($commands) . ' rows, ', $output);
        self::assertStringContainsString(' 0 lost, 0 duplicates', $output);
        self::assertSame($commands, $this->rows());
    }

    public function testACommandThatCannotBeStoredMakesItFail(): void
    {
        $this->finish($this->start('--commands=10'));
        $this->query("CREATE TRIGGER refuse BEFORE INSERT ON customers WHEN NEW.name = 'name_7' BEGIN SELECT RAISE(ABORT, 'seven is refused'); END");

        [$code, $output] = $this->finish($this->start('--commands=10'));

        self::assertSame(1, $code, $output);
        self::assertStringContainsString('✗ 9 rows, 9 events, 1 lost', $output);
        self::assertStringContainsString('seven is refused', $output);
    }

    /** @dataProvider wrongOptions */
    #[DataProvider('wrongOptions')]
    public function testAWrongOptionIsExplained(string $options): void
    {
        [$code, $output] = $this->finish($this->start($options));

        self::assertSame(2, $code, $output);
        self::assertStringContainsString('usage:', $output);
    }

    public static function wrongOptions(): iterable
    {
        yield 'no number above zero' => ['--commands=-1'];
        yield 'a broker there is none of' => ['--broker=kafka'];
        yield 'a slip of the pen' => ['--commands=10 --comands=5'];
        yield 'a word' => ['--commands=10 20'];
        yield 'help' => ['--help'];
    }

    public function testAMissingAddressIsAnErrorAndNotASuccess(): void
    {
        [$code, $output] = $this->finish($this->start('--broker=rabbitmq', ['DATABASE_URL' => '']));

        self::assertSame(2, $code);
        self::assertStringContainsString('DATABASE_URL is not set', $output);
    }

    /**
     * @param array<string, string> $environment
     *
     * @return array{resource, resource}
     */
    private function start(string $options, array $environment = []): array
    {
        $command = \sprintf(
            'exec %s -d extension=%s %s %s 2>&1',
            \PHP_BINARY,
            \escapeshellarg((string) \getenv('WEFT_EXTENSION')),
            \dirname(__DIR__, 2) . '/examples/customers/app.php',
            $options,
        );
        @\mkdir("{$this->file}.tmp");
        $process = \proc_open($command, [1 => ['pipe', 'w']], $pipes, null, $environment + ['CUSTOMERS_FILE' => $this->file, 'TMPDIR' => "{$this->file}.tmp"] + \getenv());
        self::assertIsResource($process);

        return [$process, $pipes[1]];
    }

    /**
     * @param array{resource, resource} $process
     *
     * @return array{int, string} exit code and what it printed
     */
    private function finish(array $process): array
    {
        [$handle, $pipe] = $process;
        \stream_set_blocking($pipe, false);
        $output = '';
        $deadline = \microtime(true) + self::DEADLINE;
        do {
            $output .= \stream_get_contents($pipe);
            $status = \proc_get_status($handle);
            if (\microtime(true) > $deadline) {
                \proc_terminate($handle, \SIGKILL);
                self::fail("The example did not end within the deadline:\n{$output}");
            }
            \usleep(10_000);
        } while ($status['running']);
        $output .= \stream_get_contents($pipe);
        \proc_close($handle);

        return [$status['exitcode'], $output];
    }

    /**
     * Starts a run and ends it by a signal in the middle. On a busy machine a run may end before the signal comes: a longer one follows.
     *
     * @return array{int, int, string} how many commands it had, its exit code and what it printed
     */
    private function interrupt(int $signal): array
    {
        for ($commands = 5_000;; $commands *= 4) {
            $process = $this->start("--commands={$commands}");
            $this->waitForRows(500);
            \proc_terminate($process[0], $signal);
            [$code, $output] = $this->finish($process);
            if ($this->rows() < $commands) {
                return [$commands, $code, $output];
            }
            $this->startOver($commands);
        }
    }

    /** Deletes the database of a run that could not be caught in the middle. */
    private function startOver(int $commands): void
    {
        self::assertLessThan(320_000, $commands, 'no run could be caught in the middle');
        $this->tearDown();
    }

    private function waitForRows(int $rows): void
    {
        $deadline = \microtime(true) + self::DEADLINE;
        while ($this->rows() < $rows) {
            self::assertLessThan($deadline, \microtime(true), 'the example stored too few rows');
            \usleep(5_000);
        }
    }

    private function rows(): int
    {
        try {
            return (int) $this->query('SELECT count(*) FROM customers')->fetchColumn();
        } catch (\PDOException) {
            return 0; // The file or the table is not there yet.
        }
    }

    private function query(string $sql): \PDOStatement
    {
        $database = new \PDO("sqlite:{$this->file}", options: [\PDO::ATTR_TIMEOUT => 5]);

        return $database->query($sql);
    }
}
