<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Pool\PoolOptions;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;
use Weft\Tests\Sql\Support\PgBouncer;
use Weft\Tests\Sql\Support\Witness;

use function Weft\all;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** Behind PgBouncer, which gives every transaction whichever of its connections is free. */
final class PgBouncerTest extends TestCase
{
    use Witness;

    private const SERVER_CONNECTIONS = 3;

    /** @var list<PgBouncer> */
    private array $started = [];

    /** @after */
    #[After]
    protected function stop(): void
    {
        foreach ($this->started as $bouncer) {
            $bouncer->stop();
        }
    }

    /** @dataProvider settings */
    #[DataProvider('settings')]
    public function testEverybodyGetsTheAnswerToHisOwnStatementOnFewServerConnections(string $mode, string $parameters): void
    {
        run(function () use ($mode, $parameters): void {
            $db = $this->connect($mode, $parameters);
            $sessions = new \ArrayObject();
            all(\array_map(static fn (int $n): \Closure => static function () use ($db, $n, $sessions): void {
                $column = 'c' . $n % 20;
                $row = $db->execute("SELECT ?::int AS $column, pg_backend_pid() AS session", [$n])->rows()[0];
                self::assertSame($n, $row[$column]);
                $sessions[$row['session']] = true;
            }, \range(1, 300)));
            self::assertGreaterThan(1, \count($sessions));
            self::assertLessThanOrEqual(self::SERVER_CONNECTIONS, \count($sessions));
            $db->close();
        });
    }

    /** @dataProvider settings */
    #[DataProvider('settings')]
    public function testATransactionStaysOnOneServerConnection(string $mode, string $parameters): void
    {
        run(function () use ($mode, $parameters): void {
            $db = $this->connect($mode, $parameters);
            all(\array_map(static fn (int $n): \Closure => static function () use ($db, $n): void {
                $seen = $db->transaction(static function (Transaction $tx) use ($n): array {
                    $first = $tx->execute('SELECT pg_backend_pid(), txid_current()')->rows()[0];
                    delay(0.001 * ($n % 5));

                    return [$first, $tx->execute('SELECT pg_backend_pid(), txid_current()')->rows()[0]];
                });
                self::assertSame($seen[0], $seen[1]);
            }, \range(1, 60)));
            $db->close();
        });
    }

    /** @dataProvider settings */
    #[DataProvider('settings')]
    public function testTablesMayChangeAndSessionsMayBeDiscardedUnderIt(string $mode, string $parameters): void
    {
        run(function () use ($mode, $parameters): void {
            $db = $this->connect($mode, $parameters);
            $table = 'weft_bouncer_' . \bin2hex(\random_bytes(4));
            $db->execute("CREATE TABLE $table (a INT, b INT)");
            try {
                $db->execute("INSERT INTO $table VALUES (?, ?)", [1, 2]);
                $select = static fn (): array => $db->execute("SELECT * FROM $table WHERE a = ?", [1])->rows();
                $everywhere = static fn (array $expected) => all(\array_fill(0, 20, static fn () => self::assertSame([$expected], $select())));
                $everywhere(['a' => 1, 'b' => 2]);
                // The form of a prepared statement's result changes (SQLSTATE 0A000, or 08P01 where another session prepared it).
                $db->execute("ALTER TABLE $table ADD c INT DEFAULT 3");
                $everywhere(['a' => 1, 'b' => 2, 'c' => 3]);
                $db->execute('DISCARD ALL');
                $everywhere(['a' => 1, 'b' => 2, 'c' => 3]);
                $db->execute('DEALLOCATE ALL');
                $everywhere(['a' => 1, 'b' => 2, 'c' => 3]);
            } finally {
                $db->execute("DROP TABLE $table");
                $db->close();
            }
        });
    }

    /** @dataProvider settings */
    #[DataProvider('settings')]
    public function testAStatementThatIsGivenUpEndsOnTheServerAndItsConnectionIsOfUseAgain(string $mode, string $parameters): void
    {
        run(function () use ($mode, $parameters): void {
            $db = $this->connect($mode, $parameters, size: 1);
            $mark = '/* ' . \bin2hex(\random_bytes(8)) . ' */';
            self::thrown(TimeoutException::class, static fn () => timeout(0.2, static fn () => $db->execute("SELECT pg_sleep(30) $mark")->rows()));
            $begin = \microtime(true);
            self::assertSame(7, $db->execute('SELECT ?::int', [7])->value());
            $count = 'SELECT count(*) FROM pg_stat_activity WHERE state = \'active\' AND pid <> pg_backend_pid() AND query LIKE ?';
            self::assertSame(0, $db->execute($count, ["%$mark"])->value());
            self::assertLessThan(20.0, \microtime(true) - $begin, 'nobody waits for the 30 s of the statement');
            $db->close();
        });
    }

    public function testConnectionsAreReadyBeforeTheFirstStatement(): void
    {
        run(function (): void {
            $db = $this->connect('transaction', '&statement_cache=0', minimumIdle: 3);
            for ($end = \microtime(true) + 60.0; $db->stats()['idle'] < 3; delay(0.005)) {
                self::assertLessThan($end, \microtime(true));
            }
            self::assertSame(1, $db->execute('SELECT 1')->value());
            self::assertSame([3, 0], [$db->stats()['created'], \array_sum($db->stats()['wait_histogram'])]);
            $db->close();
        });
    }

    /** What is prepared on one of its connections is unknown on the others, or known there to another client. */
    public function testStatementsByNameAreNeverTakenForAnothersEvenWhereTheyCannotBeUsed(): void
    {
        run(function (): void {
            $db = $this->connect('transaction', '');
            $answered = new \ArrayObject();
            all(\array_map(static fn (int $n): \Closure => static function () use ($db, $n, $answered): void {
                $column = 'c' . $n % 20;
                try {
                    self::assertSame([[$column => $n]], $db->execute("SELECT ?::int AS $column", [$n])->rows());
                    $answered->append($n);
                } catch (SqlException $refused) {
                    self::assertContains($refused->sqlState, ['26000', '42P05'], (string) $refused);
                }
            }, \range(1, 300)));
            self::assertGreaterThan(0, \count($answered));
            self::assertTrue(\count($answered) === 300 || !PgBouncer::keepsPreparedStatements());
            $db->close();
        });
    }

    /** @return iterable<string, array{string, string}> pool mode, and what the DSN has to say */
    public static function settings(): iterable
    {
        yield 'by transaction, without names' => ['transaction', '&statement_cache=0'];
        yield 'by session, with a cache of prepared statements' => ['session', ''];
        if (PgBouncer::keepsPreparedStatements()) {
            yield 'by transaction, with a cache of prepared statements' => ['transaction', ''];
        }
    }

    private function connect(string $mode, string $parameters, int $size = 0, int $minimumIdle = 0): Database
    {
        $server = \parse_url(self::postgres());
        $bouncer = $this->started[] = new PgBouncer($server, $mode, self::SERVER_CONNECTIONS);
        // A session of PgBouncer's lasts as long as the client's: more clients than those would wait for ever.
        $size = $size ?: ($mode === 'session' ? self::SERVER_CONNECTIONS : 20);

        return Database::connect($bouncer->dsn($parameters), new PoolOptions(size: $size, minimumIdle: $minimumIdle));
    }
}
