<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\AuthenticationException;
use Weft\Sql\ConnectionException;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\ConnectionRefusedException;
use Weft\Sql\ConnectionTimeoutException;
use Weft\Sql\Database;
use Weft\Sql\DatabaseNotFoundException;
use Weft\Sql\HostNotFoundException;
use Weft\Sql\ServerDownException;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;
use Weft\Sql\TransactionOutcomeUnknownException;
use Weft\Sql\UndefinedTableException;
use Weft\Tests\Runtime\Subprocess;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** What every database behind a network promises. A schema of its own belongs to each test. */
abstract class ServerConformance extends SqlConformance
{
    protected string $schema;

    private static ?Database $admin = null;

    /** The environment's name for the DSN of the server, and the scheme of such a DSN. */
    protected const ENVIRONMENT = '';
    protected const SCHEME = '';

    /** Statements: make and drop `{$schema}`, the number of the own session, end another one. */
    protected const CREATE = '';
    protected const DROP = '';
    protected const SESSION = '';
    protected const KILL = '';
    /** One that takes a fifth of a second. */
    protected const PAUSE = '';

    /** A query for the number of running {@see endless()} statements of the session. */
    abstract protected function running(int $session): string;

    /** A query for 1 while the server has the session, 0 afterwards. */
    abstract protected function alive(int $session): string;

    /** The path and options of a DSN that lead into the schema. */
    abstract protected function path(): string;

    public static function tearDownAfterClass(): void
    {
        self::$admin?->close();
        self::$admin = null;
    }

    protected function setUp(): void
    {
        $this->schema = 'weft_sql_' . \bin2hex(\random_bytes(6));
        self::admin()->execute(\sprintf(static::CREATE, $this->schema));
        parent::setUp();
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        self::admin()->execute(\sprintf(static::DROP, $this->schema));
    }

    protected function dsn(): string
    {
        return \preg_replace('~/weft$~', '', self::server()) . $this->path();
    }

    // Cancellation and loss

    public function testACancelledStatementIsGoneFromTheServerAndItsConnectionServesTheNext(): void
    {
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0, return: 60.0)));
        $session = $db->execute(static::SESSION)->value();

        run(function () use ($db, $session): void {
            self::thrown(TimeoutException::class, fn () => timeout(0.2, fn () => $db->execute($this->endless())));
            self::assertSame($session, $db->execute(static::SESSION)->value());
            self::assertSame(0, self::admin()->execute($this->running($session))->value());
        });
        $db->close();
    }

    public function testAnAnswerThatIsLeftHalfReadIsDrainedBeforeItsConnectionServesTheNext(): void
    {
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0, return: 60.0)));
        $session = $db->execute(static::SESSION)->value();
        $long = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 150) SELECT a.n, REPEAT('x', 1000) AS x FROM s a, s b";

        run(static function () use ($db, $session, $long): void {
            $left = 0;
            for ($round = 0; $round < 24; $round++) {
                // A statement without parameters is sent as text on MySQL.
                $isPrepared = $round % 2 === 1;
                try {
                    $rows = timeout(0.001 * ($round + 1), static fn (): array => $db->execute($long . ($isPrepared ? ' WHERE a.n > ?' : ''), $isPrepared ? [0] : [])->rows());
                    self::assertCount(150 * 150, $rows);
                } catch (TimeoutException) {
                    $left++;
                }
                self::assertSame(static::class . " {$round}", $db->execute('SELECT ?', [static::class . " {$round}"])->value());
                self::assertSame($session, $db->execute(static::SESSION)->value(), "round {$round}: it is the same connection");
            }
            self::assertGreaterThan(0, $left);
        });
        self::assertSame([1, 0], [$db->stats()['created'], $db->stats()['broken']]);
        $db->close();
        self::eventually(fn (): bool => self::admin()->execute($this->alive($session))->value() === 0, 'the end of the session');
    }

    public function testStatementsAreClosedThatAreEvictedBeforeOneWithInvalidParameters(): void
    {
        $db = Database::connect($this->dsn() . (\str_contains($this->dsn(), '?') ? '&' : '?') . 'statement_cache=2', new PoolOptions(size: 1));
        $invalid = static function (Database|Transaction $on, int $number): void {
            // It is prepared, and what it is given is refused before it is sent.
            self::thrown(SqlException::class, static function () use ($on, $number): void {
                $on->execute("SELECT ? + {$number}", [])->rows();
            });
        };
        for ($number = 0; $number < 10; $number++) {
            self::assertSame("TEXT {$number}", $db->execute("SELECT CONCAT(UPPER(?), ' {$number}')", ['text'])->value());
            $invalid($db, $number);
            self::assertSame($number, $db->transaction(static function (Transaction $transaction) use ($number): mixed {
                return $transaction->execute("SELECT CAST(? AS DECIMAL(9)) + 0 * {$number} AS n", [(string) $number])->value() == $number ? $number : null;
            }));
        }

        self::assertLessThanOrEqual(5, $this->prepared($db));
        $db->close();
    }

    /** How many statements the session has prepared and not closed. */
    abstract protected function prepared(Database $db): int;

    public function testASessionKilledUnderAStatementIsALostConnectionAndTheNextStatementWorks(): void
    {
        run(function (): void {
            $session = 0;
            $sleep = function () use (&$session): void {
                $this->db->transaction(function (Transaction $tx) use (&$session): void {
                    $session = $tx->execute(static::SESSION)->value();
                    $tx->execute($this->endless())->rows();
                });
            };
            $kill = static function () use (&$session): void {
                self::eventually(static function () use (&$session): bool {
                    return $session !== 0;
                }, 'a session');
                delay(0.1);
                self::admin()->execute(\sprintf(static::KILL, $session));
            };

            self::assertSame([ConnectionLostException::class, null], self::outcomes($sleep, $kill));
            self::assertSame(1, $this->db->execute('SELECT 1')->value());
        });
    }

    public function testAnIdleConnectionThatTheServerClosedIsNotLent(): void
    {
        $db = $this->connect(new PoolOptions(size: 1));
        $session = $db->execute(static::SESSION)->value();
        self::admin()->execute(\sprintf(static::KILL, $session));
        self::eventually(fn (): bool => self::admin()->execute($this->alive($session))->value() === 0, 'the end of the session');
        \usleep(100_000);

        self::assertNotSame($session, $db->execute(static::SESSION)->value());
        $db->close();
    }

    public function testAConnectionCutUnderACommitLeavesItsOutcomeUnknown(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            run(static function () use ($db, $proxy): void {
                self::commitOnce($db);
                $tx = $db->begin();
                $tx->execute('SELECT 2')->value();
                $proxy->hold();
                $cut = static function () use ($proxy): void {
                    self::eventually(static fn (): bool => $proxy->trips() > 0, 'COMMIT on its way');
                    $proxy->cut();
                };

                self::assertSame([TransactionOutcomeUnknownException::class, null], self::outcomes($tx->commit(...), $cut));
                self::assertFalse($tx->isOpen());
            });
        });
    }

    public function testACommitThatIsCancelledAfterItWasSentHasAnUnknownOutcomeAndSaysWhatToCheck(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            run(static function () use ($db, $proxy): void {
                self::commitOnce($db);
                $tx = $db->begin();
                $read = $tx->execute('SELECT 2');
                $tx->flush();
                $proxy->hold();
                $task = async($tx->commit(...));
                self::eventually(static fn (): bool => $proxy->trips() > 0, 'COMMIT on its way');
                $task->cancel();
                $cancelled = self::thrown(CancelledException::class, $task->await(...));

                self::assertInstanceOf(TransactionOutcomeUnknownException::class, $cancelled->getPrevious());
                self::assertStringContainsString('the outcome of a transaction is unknown: COMMIT was sent to database', $cancelled->getMessage());
                self::assertStringContainsString('read back something that only it has written', $cancelled->getMessage());
                self::assertFalse($tx->isOpen());
                self::assertSame(2, $read->value());
                self::thrown(TransactionOutcomeUnknownException::class, $tx->commit(...));
                self::assertInstanceOf(ConnectionLostException::class, self::thrown(TransactionOutcomeUnknownException::class, $tx->flush(...)));
                $proxy->cut();
            });
        });
    }

    public function testATimeoutOverACommitThatWasSentSaysThatItsOutcomeIsUnknown(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            run(static function () use ($db, $proxy): void {
                self::commitOnce($db);
                $tx = $db->begin();
                $tx->execute('SELECT 2')->value();
                $proxy->hold();
                $expired = self::thrown(TimeoutException::class, static fn () => timeout(0.5, $tx->commit(...)));

                self::assertInstanceOf(TransactionOutcomeUnknownException::class, $expired->getPrevious());
                self::assertStringContainsString('did not finish within 0.5 seconds', $expired->getMessage());
                self::assertStringContainsString('the outcome of a transaction is unknown', $expired->getMessage());
                $proxy->cut();
            });
        });
    }

    /** So that a connection has prepared its commit: what travels next is the commit itself. */
    private static function commitOnce(Database $db): void
    {
        $db->transaction(static fn (Transaction $tx) => $tx->execute('SELECT 1')->value());
    }

    public function testATransactionThatIsCancelledBeforeItsCommitIsRolledBackForCertain(): void
    {
        run(function (): void {
            $tx = $this->db->begin();
            // The transaction has its connection, so that the flush sends at once instead of waiting for one.
            $tx->execute('SELECT 1')->rows();
            $result = $tx->execute($this->endless());
            $task = async($tx->flush(...));
            delay(0.05);
            $task->cancel();
            $cancelled = self::thrown(CancelledException::class, $task->await(...));

            self::assertNull($cancelled->getPrevious());
            self::assertStringContainsString('cancelled and rolled back', self::thrown(SqlException::class, $result->rows(...))->getMessage());
        });
    }

    /** @return iterable<string, array{float}> */
    public static function returnTimeouts(): iterable
    {
        yield 'without time to clean up' => [0.0];
        yield 'while it is being cancelled' => [0.021];
    }

    /** @dataProvider returnTimeouts */
    #[DataProvider('returnTimeouts')]
    public function testAStatementWhoseConnectionIsGivenUpIsStoppedOnTheServer(float $returnTimeout): void
    {
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(return: $returnTimeout)));
        $session = $db->execute(static::SESSION)->value();

        run(function () use ($db, $session): void {
            self::thrown(TimeoutException::class, fn () => timeout(0.1, fn () => $db->execute($this->endless())));
            timeout(60.0, function () use ($session): void {
                while (self::admin()->execute($this->running($session))->value() > 0) {
                    delay(0.01);
                }
            });
        });
        self::assertSame(1, $db->execute('SELECT 1')->value());
        $db->close();
    }

    public function testAServerThatFallsSilentCostsATimeoutAndNotThePool(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            run(static function () use ($db, $proxy): void {
                $db->execute('SELECT 1');
                $proxy->hold();
                $started = \hrtime(true);
                self::thrown(TimeoutException::class, static fn () => timeout(0.2, static fn () => $db->execute('SELECT 2')));
                self::thrown(SqlException::class, static fn () => $db->execute('SELECT 3'));
                self::assertLessThan(20e9, \hrtime(true) - $started);
            });
        });
    }

    // Streams

    public function testAStreamInATransactionNeedsLittleMemoryAndOtherStatementsRunMeanwhile(): void
    {
        $this->items();
        $this->db->transaction(function (Transaction $tx): void {
            $rows = 0;
            $before = $peak = self::residentBytes();
            foreach ($tx->stream($this->series(300_000)) as $key => $row) {
                if (++$rows % 10_000 === 0) {
                    $peak = \max($peak, self::residentBytes());
                    $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [$row['n'], "name {$rows}"]);
                    self::assertSame(\intdiv($rows, 10_000), $tx->execute('SELECT count(*) FROM items')->value());
                }
            }
            self::assertSame([300_000, 299_999], [$rows, $key]);
            self::assertLessThan(20 << 20, $peak - $before, 'bytes more than before');
        });
        self::assertCount(30, $this->names());
    }

    public function testStreamsInATransactionMayBeNestedAlsoOfOneText(): void
    {
        $this->db->transaction(function (Transaction $tx): void {
            $pairs = [];
            foreach ($tx->stream($this->series(7), chunk: 2) as $outer) {
                foreach ($tx->stream($this->series(5), chunk: 2) as $inner) {
                    $pairs[] = [$outer['n'], $inner['n']];
                    if ($outer['n'] === 3) {
                        break;
                    }
                }
            }
            self::assertCount(6 * 5 + 1, $pairs);
            self::assertSame([7, 5], $pairs[30]);
        });
    }

    public function testAnErrorOfAStreamInATransactionIsThrownByItsLoopAndFailsIt(): void
    {
        $this->items();
        self::thrown(UndefinedTableException::class, fn () => $this->db->transaction(function (Transaction $tx): void {
            $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
            self::thrown(UndefinedTableException::class, static fn () => \iterator_to_array($tx->stream('SELECT * FROM nowhere')));
            $tx->execute("INSERT INTO items (id, name) VALUES (2, 'two')");
        }));
        self::assertSame([], $this->names());
    }

    public function testACancelledStreamInATransactionRollsItBackAndTheConnectionGoesOn(): void
    {
        $this->items();
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0, return: 60.0)));
        $session = $db->execute(static::SESSION)->value();
        run(function () use ($db): void {
            self::thrown(TimeoutException::class, fn () => timeout(0.2, fn () => $db->transaction(function (Transaction $tx): void {
                $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
                foreach ($tx->stream($this->series(2_000_000), chunk: 10) as $_) {
                }
            })));
        });
        self::assertSame($session, $db->execute(static::SESSION)->value());
        self::assertSame([], $this->names());
        $db->close();
    }

    // Batches

    public function testItemsOfABatchShareRoundTrips(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            $db->execute('CREATE TABLE t (a BIGINT)');
            $db->executeMany('INSERT INTO t VALUES (?)', [[0]]);
            $proxy->trips();

            $db->executeMany('INSERT INTO t VALUES (?)', \array_map(static fn (int $n): array => [$n], \range(1, 3_000)));

            // Three batches and the commit; a server that answers while a batch is still on its way counts as one more.
            self::assertLessThan(300, $proxy->trips(), 'for three thousand items');
        });
    }

    public function testABatchWhoseConnectionIsLostNamesNoItemAndHasNoEffect(): void
    {
        $this->items();
        $lost = self::thrown(ConnectionLostException::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $session = $tx->execute(static::SESSION)->value();
            $items = static function () use ($session): iterable {
                for ($n = 1; $n < 3_000; $n++) {
                    if ($n === 1_500) {
                        self::admin()->execute(\sprintf(static::KILL, $session));
                    }
                    yield [$n, "name {$n}"];
                }
            };
            $tx->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', $items());
        }));

        self::assertNull($lost->item);
        self::assertSame([], $this->names());
    }

    // Sessions

    public function testACleanSessionPaysNoRoundTripAfterATransactionOrABatch(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            $db->execute('CREATE TABLE t (a BIGINT)');
            $rounds = static function () use ($db): void {
                $db->transaction(static fn (Transaction $tx) => $tx->execute('SELECT count(*) FROM t')->value());
                $db->executeMany('INSERT INTO t VALUES (?)', [[1], [2]]);
                $db->execute('SELECT count(*) FROM t');
            };
            $rounds();
            $proxy->trips();

            $rounds();

            self::assertSame(5, $proxy->trips(), 'the SELECT and its COMMIT, the batch and its COMMIT, the SELECT');
        });
    }

    // Connecting

    public function testAServerThatIsDownIsNamed(): void
    {
        $db = Database::connect(static::SCHEME . '://app:hunter2@127.0.0.1:1/app');

        $error = self::thrown(ConnectionRefusedException::class, static fn () => $db->execute('SELECT 1'));

        self::assertStringContainsString('127.0.0.1:1', $error->getMessage());
        self::assertStringNotContainsString('hunter2', (string) $error);
        // While the pool waits before it tries again, it answers for the server: ServerDownException.
        $refused = self::thrown(ConnectionException::class, static fn () => $db->transaction(static fn (Transaction $tx) => $tx->execute('SELECT 1')));
        self::assertContains($refused::class, [ServerDownException::class, ConnectionRefusedException::class]);
        self::assertStringContainsString('127.0.0.1:1', $refused->getMessage());
        self::assertStringNotContainsString('hunter2', (string) $refused);
    }

    /** @return list<string> of users with passwords of their own kind */
    protected function users(): array
    {
        return ['weft', 'nobody'];
    }

    public function testWrongCredentialsAreNamedWithoutThePassword(): void
    {
        foreach ($this->users() as $user) {
            $dsn = self::address("{$user}:hunter2", '/weft');
            $error = self::thrown(AuthenticationException::class, static fn () => Database::connect($dsn)->execute('SELECT 1'));
            self::assertStringContainsString("\"{$user}\"", $error->getMessage());
            self::assertStringNotContainsString('hunter2', (string) $error);
        }
    }

    public function testADatabaseThatIsNotThereIsNamed(): void
    {
        $server = \parse_url(self::server());
        $error = self::thrown(DatabaseNotFoundException::class, static fn () => Database::connect(self::address("{$server['user']}:{$server['pass']}", '/weft_nowhere'))->execute('SELECT 1'));

        self::assertStringContainsString('"weft_nowhere"', $error->getMessage());
        self::assertStringNotContainsString("{$server['user']}:{$server['pass']}", (string) $error);
    }

    public function testAHostWithoutAnAddressAndAServerThatSaysNothingAreNamed(): void
    {
        $silent = \stream_socket_server('tcp://127.0.0.1:0');
        self::assertNotFalse($silent);
        $name = \stream_socket_get_name($silent, false);

        $error = self::thrown(HostNotFoundException::class, static fn () => Database::connect(static::SCHEME . '://app:hunter2@no-such-host.invalid/app')->execute('SELECT 1'));
        self::assertStringContainsString('no-such-host.invalid', $error->getMessage());
        self::assertStringNotContainsString('hunter2', (string) $error);
        $error = self::thrown(ConnectionTimeoutException::class, static fn () => Database::connect(static::SCHEME . "://app:hunter2@{$name}/app?connect_timeout=0.2")->execute('SELECT 1'));
        self::assertStringContainsString((string) $name, $error->getMessage());
        self::assertStringNotContainsString('hunter2', (string) $error);
    }

    public function testAServerThatSpeaksAnotherProtocolIsNamedWithoutThePassword(): void
    {
        run(static function (): void {
            foreach (['SSH-2.0-OpenSSH_9.2' . "\r\n", \str_repeat("\xff", 200), \str_repeat("\0", 200), 'HTTP/1.1 400 Bad Request' . "\r\n\r\n"] as $words) {
                $process = \proc_open([\PHP_BINARY, '-n', '-r', '
                    $listener = stream_socket_server("tcp://127.0.0.1:0");
                    echo stream_socket_get_name($listener, false), "\n";
                    while ($client = stream_socket_accept($listener, 20)) { fwrite($client, base64_decode($argv[1])); usleep(50000); fclose($client); }
                ', \base64_encode($words)], [1 => ['pipe', 'w']], $pipes);
                self::assertIsResource($process);
                $at = \trim((string) \fgets($pipes[1]));
                $error = self::thrown(SqlException::class, static fn () => Database::connect(static::SCHEME . "://app:hunter2@{$at}/app?sslmode=disable&connect_timeout=2")->execute('SELECT 1'));
                self::assertStringContainsString($at, $error->getMessage());
                self::assertStringNotContainsString('hunter2', (string) $error);
                \proc_terminate($process);
                \proc_close($process);
            }
        });
    }

    public static function wrongDsns(): iterable
    {
        yield from parent::wrongDsns();
        yield 'unknown option' => [static::SCHEME . '://app:hunter2@localhost/app?colour=red'];
        yield 'wrong port' => [static::SCHEME . '://app:hunter2@localhost:99999/app'];
        yield 'a password with a question mark' => [static::SCHEME . '://app:47?hunter2@localhost/app'];
        yield 'a password with a slash' => [static::SCHEME . '://app:47/hunter2@localhost/app?user=app'];
        yield 'a mode that verifies less than the authorities of the system need' => [static::SCHEME . '://app:hunter2@localhost/app?sslmode=require&sslrootcert=system'];
    }

    /** @param callable(Database, Proxy): void $work */
    protected function behindProxy(callable $work): void
    {
        $server = \parse_url(self::server());
        $proxy = new Proxy($server['host'], $server['port']);
        $path = $this->path();
        $dsn = static::SCHEME . "://{$server['user']}:{$server['pass']}@127.0.0.1:{$proxy->port}{$path}"
            . (\str_contains($path, '?') ? '&' : '?') . 'sslmode=disable&connect_timeout=5';
        try {
            $work(Database::connect($dsn, new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 10.0))), $proxy);
        } finally {
            $proxy->stop();
        }
    }

    /**
     * Runs all of them at a time.
     *
     * @return list<class-string<\Throwable>|null> what each of them threw
     */
    protected static function outcomes(callable ...$work): array
    {
        return \array_values(all(\array_map(static fn (callable $work): callable => static function () use ($work): ?string {
            try {
                $work();
            } catch (\Throwable $thrown) {
                return $thrown::class;
            }

            return null;
        }, $work)));
    }

    /** Sees what happens from a connection of its own. */
    protected static function admin(): Database
    {
        return self::$admin ??= Database::connect(self::server());
    }

    protected static function server(): string
    {
        $dsn = \getenv(static::ENVIRONMENT);
        self::assertNotFalse($dsn, static::ENVIRONMENT . ' is not set: run `make services`');

        return $dsn;
    }

    /** The server's address with other credentials and another path. */
    private static function address(string $credentials, string $path): string
    {
        $server = \parse_url(self::server());

        return static::SCHEME . "://{$credentials}@{$server['host']}:{$server['port']}{$path}";
    }

    public function testAForkedChildThatEndsDoesNotDisturbItsParent(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('pcntl is not there');
        }
        [$dsn, $session, $pause] = [\var_export($this->dsn(), true), static::SESSION, static::PAUSE];
        $program = Subprocess::run(<<<PHP
            \$db = Weft\\Sql\\Database::connect($dsn, new Weft\\Pool\\PoolOptions(size: 1));
            \$before = \$db->execute('$session')->value();
            foreach (['dropped', 'kept'] as \$what) {
                \$child = pcntl_fork();
                if (\$child === 0) {
                    try { \$db->execute('SELECT 1'); } catch (Weft\\Runtime\\ForkedProcessError) { echo "refused\n"; }
                    if (\$what === 'dropped') { unset(\$db); }
                    exit(0);
                }
                pcntl_waitpid(\$child, \$status);
                run(static fn () => timeout(60.0, static fn () => \$db->transaction(static fn (\$tx) => \$tx->execute('$pause')->rows())));
            }
            echo \$db->execute('$session')->value() === \$before ? "the same session\n" : "another session\n";
            PHP);

        self::assertSame("refused\nrefused\nthe same session\n", $program->output . $program->errors);
    }

    /** @return iterable<string, array{string}> what a child inherits in use, and how it may end that */
    public static function inherited(): iterable
    {
        yield 'a stream whose loop is left' => ['foreach ($db->stream("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3", chunk: 1) as $_) { if (fork()) { continue; } exit(0); }'];
        yield 'a transaction that is dropped' => ['$tx = $db->begin(); $tx->execute("SELECT 1")->value(); if (!fork()) { unset($tx); exit(0); } $tx->execute("SELECT 2")->value(); $tx->commit();'];
        yield 'a stream in a transaction' => ['$db->transaction(function ($tx) { foreach ($tx->stream("SELECT 1 UNION ALL SELECT 2", chunk: 1) as $_) { if (fork()) { continue; } exit(0); } });'];
        yield 'a pool that is changed' => ['if (!fork()) { foreach (["reset", "pause"] as $call) { try { $db->$call(); } catch (Weft\Runtime\ForkedProcessError) {} } exit(0); }'];
        yield 'a pool that is closed' => ['if (!fork()) { try { $db->close(); } catch (Weft\Runtime\ForkedProcessError) {} exit(0); }'];
    }

    /** @dataProvider inherited */
    #[DataProvider('inherited')]
    public function testAForkedChildDoesNotEndWhatItsParentUses(string $use): void
    {
        $this->assertUnharmedByFork($use);
    }

    /** `$use` calls `fork()`, which is true in the parent, after the child has ended. */
    protected function assertUnharmedByFork(string $use): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('pcntl is not there');
        }
        [$dsn, $session] = [\var_export($this->dsn(), true), static::SESSION];
        $program = Subprocess::run(<<<PHP
            function fork(): bool
            {
                \$child = pcntl_fork();
                \$child === 0 || pcntl_waitpid(\$child, \$status);

                return \$child !== 0;
            }
            \$db = Weft\\Sql\\Database::connect($dsn, new Weft\\Pool\\PoolOptions(size: 1));
            \$before = \$db->execute('$session')->value();
            $use
            echo \$db->execute('$session')->value() === \$before ? "the same session\n" : "another session\n";
            PHP);

        self::assertSame("the same session\n", $program->output . $program->errors);
    }
}
