<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Sql\Driver;
use Weft\Sql\Internal\Clock;
use Weft\Sql\Transaction;
use Weft\Tests\Sql\Support\Databases;

use function Weft\run;

/** The clock of locks, sessions and delayed messages. */
final class ClockTest extends TestCase
{
    use Databases;

    /** 02:45 in Berlin, first of summer time and an hour later of winter time. */
    private const REPEATED = [1_792_889_100, 1_792_892_700];

    /** Seconds between the clock and the machine's that a busy machine explains. */
    private const TOLERANCE = 300.0;

    /**
     * @dataProvider databases
     */
    #[DataProvider('databases')]
    public function testTheClockTellsTheUnixTime(string $kind): void
    {
        run(function () use ($kind): void {
            $database = $this->database($kind);
            $driver = $database->driver();

            self::assertEqualsWithDelta(\microtime(true), $database->execute('SELECT ' . Clock::seconds($driver))->value(), self::TOLERANCE);
            self::assertEqualsWithDelta(\microtime(true), $database->execute('SELECT ' . Clock::microseconds($driver))->value() / 1e6, self::TOLERANCE);
        });
    }

    /** A statement that waited for a lock must not use the time before it waited. */
    public function testTheClockOfMariaDbAndMySqlGoesOnWhileAStatementWaits(): void
    {
        run(function (): void {
            $seconds = Clock::seconds(Driver::Mysql);
            $waited = $this->database('mariadb')->execute("SELECT {$seconds} - CAST(@@timestamp AS DOUBLE) WHERE SLEEP(0.5) = 0")->value();

            self::assertGreaterThan(0.45, $waited);
            self::assertLessThan(self::TOLERANCE, $waited);
        });
    }

    public function testTheClockOfMariaDbAndMySqlDoesNotDependOnTheZoneOfTheSession(): void
    {
        run(function (): void {
            $database = $this->database('mariadb');
            foreach (['-11:30', '+00:00', '+05:45', '+13:00'] as $zone) {
                $times = $database->transaction(static function (Transaction $transaction) use ($zone): array {
                    $transaction->execute("SET time_zone = '{$zone}'");
                    $times = $transaction->execute('SELECT ' . Clock::seconds(Driver::Mysql) . ' AS seconds, ' . Clock::microseconds(Driver::Mysql) . ' / 1e6 AS micros')->first();
                    $transaction->execute('SET time_zone = DEFAULT');

                    return \array_values($times);
                });
                self::assertEqualsWithDelta(\array_fill(0, 2, \microtime(true)), $times, self::TOLERANCE, $zone);
            }
        });
    }

    /** `SET timestamp` moves the start of the statement, as if the zone's offset had changed since. */
    public function testAChangeOfTheOffsetWhileAStatementRunsDoesNotMoveTheClockOfMariaDbAndMySql(): void
    {
        run(function (): void {
            $database = $this->database('mariadb');
            $hours = $database->transaction(static function (Transaction $transaction): array {
                $hours = [];
                foreach ([-1, 1] as $hour) {
                    $transaction->execute("SET timestamp = UNIX_TIMESTAMP(SYSDATE(6)) - {$hour} * 3600");
                    $hours[] = $transaction->execute('SELECT (' . Clock::seconds(Driver::Mysql) . ' - CAST(@@timestamp AS DOUBLE)) / 3600')->value();
                    $transaction->execute('SET timestamp = DEFAULT');
                }

                return $hours;
            });

            self::assertEqualsWithDelta([0.0, 0.0], $hours, self::TOLERANCE / 3600);
        });
    }

    /** With a server of its own, because the test's server knows no zone that changes its offset and its SYSDATE() cannot be set. */
    public function testTheClockOfMariaDbAndMySqlDoesNotJumpWhenSummerTimeEnds(): void
    {
        $directory = \sys_get_temp_dir() . '/weft-clock-' . \bin2hex(\random_bytes(6));
        \mkdir($directory, 0700);
        try {
            $times = self::bootstrapped($directory, \array_map(static fn(int $time): string => "SET timestamp = {$time}.5;\nSELECT SYSDATE(6), " . Clock::seconds(Driver::Mysql) . ', ' . Clock::microseconds(Driver::Mysql), self::REPEATED));
        } finally {
            \exec('rm -rf ' . \escapeshellarg($directory));
        }

        self::assertSame(
            \array_map(static fn(int $time): string => "2026-10-25 02:45:00.500000\t{$time}.5\t{$time}500000", self::REPEATED),
            $times,
        );
    }

    /**
     * @param list<string> $selects
     * @return list<string> the row of each
     */
    private static function bootstrapped(string $directory, array $selects): array
    {
        // One statement a line, as MySQL reads it.
        $sql = '';
        foreach ($selects as $at => $select) {
            $sql .= "{$select} INTO OUTFILE '{$directory}/row{$at}';\n";
        }
        \file_put_contents("{$directory}/statements.sql", $sql);
        $command = match (true) {
            \is_executable('/usr/sbin/mariadbd') => ['/usr/sbin/mariadbd', '--no-defaults', '--bootstrap', '--skip-grant-tables', "--datadir={$directory}", "--tmpdir={$directory}"],
            \is_executable('/usr/sbin/mysqld') => ['/usr/sbin/mysqld', '--no-defaults', '--initialize-insecure', "--init-file={$directory}/statements.sql", "--datadir={$directory}/data"],
            default => self::markTestSkipped('neither MariaDB nor MySQL is installed'),
        };
        \array_push($command, '--sysdate-is-now', '--secure-file-priv=', ...\posix_geteuid() === 0 ? ['--user=root'] : []);
        $process = \proc_open($command, [['file', "{$directory}/statements.sql", 'r'], ['file', "{$directory}/log", 'w'], ['redirect', 1]], $pipes, null, ['TZ' => 'Europe/Berlin'] + \getenv());
        self::assertIsResource($process);
        self::assertSame(0, \proc_close($process), (string) \file_get_contents("{$directory}/log"));

        return \array_map(static fn(int $at): string => \trim((string) \file_get_contents("{$directory}/row{$at}")), \array_keys($selects));
    }
}
