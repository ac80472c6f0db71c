<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Psr\Log\NullLogger;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\ClaimCheck;
use Weft\Bus\Claims\DatabaseStore;
use Weft\Bus\Header;
use Weft\Bus\Internal\Persistence\InboxBatch;
use Weft\Bus\Internal\Persistence\Redeliveries;
use Weft\Bus\Internal\Persistence\Tables;
use Weft\Bus\MessageOptions;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Memory;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\PostgresSchema;
use Weft\Tests\Bus\Fixtures\StoreCustomer;

/** A machine whose clock is ahead of the database server's. */
final class WrongClockTest extends BusTestCase
{
    use PostgresSchema;

    private const NOW = 'SELECT extract(epoch FROM clock_timestamp())::bigint';

    public function testSchedulesFollowTheClockOfTheServer(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->databaseWhoseClockIsBehind(30);
            $bus = Bus::connect(new Memory(), $database)->handlers(self::storing(static fn() => null))->schedule('customers', '* * * * *', static fn(): StoreCustomer => self::customer(1));
            $bus->queue(self::QUEUE)->declare();
            $now = $database->execute(self::NOW)->value();
            self::assertLessThan(\time() - 29 * 86_400, $now);
            $bus->admin()->releaseDue();
            $due = $database->execute('SELECT due FROM weft_schedules')->value();
            self::assertGreaterThanOrEqual($now, $due);
            self::assertLessThan($now + 86_400, $due);

            // A time that was missed by the server's clock.
            $bus->close();
            $database->execute('UPDATE weft_schedules SET due = due - 120');
            $next = Bus::connect($broker = new Memory(), $database)->handlers(self::storing(static fn() => null))->schedule('customers', '* * * * *', static fn(): StoreCustomer => self::customer(1));
            $next->queue(self::QUEUE)->declare();
            $next->admin()->releaseDue();
            self::assertSame(1, $broker->depth(self::QUEUE), 'it leaves at once');
            self::assertLessThan($now + 86_400, $database->execute('SELECT due FROM weft_schedules')->value());
            $next->close();
            $database->close();
        });
    }

    public function testAWorkerWhoseClockIsAheadPrunesByTheClockOfTheDatabase(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->databaseWhoseClockIsBehind(30);
            $bus = Bus::connect('memory:', $database, new BusOptions(messages: new MessageOptions(claims: new ClaimCheck($claims = new DatabaseStore($database)))));
            $bus->admin()->prune();
            $now = $database->execute(self::NOW)->value();
            foreach (['recent' => 6, 'old' => 8] as $id => $days) {
                foreach (['weft_inbox (message_id, consumer, body_hash, handled_at)', 'weft_redeliveries (message_id, consumer, redeliveries, updated_at)'] as $table) {
                    $database->execute("INSERT INTO {$table} VALUES (?, 1, 1, ?)", [$id, $now - 86_400 * $days]);
                }
            }
            $claims->put('recent', 'body');
            $bus->admin()->prune();

            foreach (['weft_inbox', 'weft_redeliveries'] as $table) {
                self::assertSame(['recent'], $database->execute("SELECT message_id FROM {$table}")->column());
            }
            self::assertSame('body', $claims->get('recent'));
            self::assertSame([0, 1], [$claims->prune(60.0), $claims->prune(-60.0)]);
            $bus->close();
            $database->close();
        });
    }

    public function testWhatIsWrittenHasTheTimeOfTheDatabase(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->databaseWhoseClockIsBehind(30);
            (new Migrator($database))->ensure(Tables::component());
            $now = $database->execute(self::NOW)->value();
            (new Redeliveries($database, new NullLogger()))->note('1', 1);
            $delivery = static fn(int $id): Delivery => new Delivery($id, 'type', '', [Header::MESSAGE_ID => "id {$id}"], false);
            $database->transaction(static function (Transaction $transaction) use ($database, $delivery): void {
                (new InboxBatch($database, 1))->note($transaction, \array_map($delivery, \range(1, 3)));
            });
            foreach (['SELECT updated_at FROM weft_redeliveries', 'SELECT min(handled_at) FROM weft_inbox', 'SELECT max(handled_at) FROM weft_inbox'] as $select) {
                self::assertEqualsWithDelta($now, $database->execute($select)->value(), 600.0, $select);
            }
            $database->close();
        });
    }

    /** For the database, whose schema has a clock of its own, this machine is ahead. */
    private function databaseWhoseClockIsBehind(int $days): Database
    {
        $schema = "search_path%3D{$this->schema}";
        $database = Database::connect(\str_replace($schema, "{$schema}%2Cpg_catalog", $this->databaseDsn()));
        $database->execute("CREATE FUNCTION {$this->schema}.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT pg_catalog.clock_timestamp() - make_interval(days => {$days})'");

        return $database;
    }
}
