<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\TestCase;
use Weft\Pool\PoolOptions;
use Weft\Runtime\Task;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Sql\TransactionOutcomeUnknownException;
use Weft\Sql\UniqueViolationException;
use Weft\Tests\Sql\Support\Databases;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\async;
use function Weft\run;
use function Weft\timeout;
use function Weft\yieldNow;

/** `max_pipeline` in the DSN of PostgreSQL, seen from PHP; crates/core/tests/postgres has the protocol. */
final class SharedRoundTripsTest extends TestCase
{
    use Databases;

    private const TASKS = 10;
    /** Where {@see insert()} gives its statement. */
    private const INSERT_LINE = 112;

    private Database $db;
    private Proxy $proxy;

    protected function setUp(): void
    {
        $dsn = $this->databaseDsn('postgres');
        $this->proxy = new Proxy((string) \parse_url($dsn, \PHP_URL_HOST), (int) \parse_url($dsn, \PHP_URL_PORT));
        $dsn = \str_replace(':' . \parse_url($dsn, \PHP_URL_PORT), ":{$this->proxy->port}", $dsn);
        $this->db = Database::connect($dsn . (\str_contains($dsn, '?') ? '&' : '?') . 'sslmode=disable&max_pipeline=100', new PoolOptions(size: 1));
        $this->db->execute('CREATE TABLE items (id INT PRIMARY KEY, name TEXT)');
        $this->insert(-1);
        $this->proxy->trips();
    }

    protected function tearDown(): void
    {
        $this->db->close();
        $this->proxy->stop();
    }

    public function testTransactionsOfTasksThatWaitShareARoundTripAndEachHasItsOwnResults(): void
    {
        run(function (): void {
            $tasks = \array_map(fn (int $id) => async(fn (): array => $this->insert($id)), \range(1, self::TASKS));
            foreach ($tasks as $index => $task) {
                self::assertSame([2 * $index + 2, 2 * $index + 3], $task->await());
            }
        });

        self::assertLessThan(self::TASKS / 2, $this->proxy->trips());
        self::assertSame(2 * self::TASKS + 2, $this->db->execute('SELECT count(*) FROM items')->value());
    }

    public function testATransactionThatFailsFailsAloneAndNamesItsOwnLine(): void
    {
        $failures = run(function (): array {
            $attempt = function (int $id): ?UniqueViolationException {
                try {
                    $this->insert($id);

                    return null;
                } catch (UniqueViolationException $failure) {
                    return $failure;
                }
            };
            $tasks = \array_map(static fn (int $id) => async(static fn () => $attempt($id)), [1, 2, 2, 3]);

            return \array_filter(\array_map(static fn (Task $task) => $task->await(), $tasks));
        });

        self::assertSame([2], \array_keys($failures));
        self::assertSame(__FILE__ . ':' . self::INSERT_LINE, $failures[2]->givenAt);
        self::assertSame('-2,-1,2,3,4,5,6,7', $this->db->execute("SELECT string_agg(id::text, ',' ORDER BY id) FROM items")->value());
    }

    public function testATransactionThatTimesOutBeforeItIsSentIsRolledBackForCertain(): void
    {
        run(function (): void {
            $this->proxy->hold();
            $first = async(fn (): array => $this->insert(1));
            $second = async(fn (): array => $this->insert(2));
            yieldNow();
            $expired = null;
            try {
                timeout(0.3, fn (): array => $this->insert(3));
            } catch (TimeoutException $expired) {
            }
            $this->proxy->release();
            self::assertNotNull($expired);
            self::assertNotInstanceOf(TransactionOutcomeUnknownException::class, $expired->getPrevious());
            self::assertSame([[2, 3], [4, 5]], [$first->await(), $second->await()]);
        });

        self::assertSame('-2,-1,2,3,4,5', $this->db->execute("SELECT string_agg(id::text, ',' ORDER BY id) FROM items")->value());
    }

    /** @return array{int, int} the ids of two rows, which a transaction inserts that is sent as a whole */
    private function insert(int $id): array
    {
        $results = $this->db->transaction(static function (Transaction $transaction) use ($id): array {
            $insert = static fn (int $id) => $transaction->execute('INSERT INTO items (id, name) VALUES (?, ?) RETURNING id', [$id, "name $id"]);

            return [$insert(2 * $id), $insert(2 * $id + 1)];
        });

        return [$results[0]->value(), $results[1]->value()];
    }
}
