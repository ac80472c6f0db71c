<?php

declare(strict_types=1);

namespace Weft\Tests\Testing;

use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Sql\Database;
use Weft\Pool\PoolClosedException;
use Weft\Sql\Transaction;
use Weft\Testing\Faults;
use Weft\Testing\Simulation;
use Weft\Testing\TestBus;
use Weft\Tests\Bus\BusTestCase;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\PostgresSchema;
use Weft\Tests\Bus\Fixtures\StoreCustomer;

/** The test kit on a server, for handlers whose statements SQLite does not know. */
class ServerDatabaseTest extends BusTestCase
{
    use PostgresSchema;

    public function testEachRunHasTheDatabaseThatTheTestMakes(): void
    {
        $made = [];
        Simulation::run(static function (TestBus $bus) use (&$made): void {
            self::assertSame(\end($made), $bus->database);
            $bus->handlers(self::counting());
            foreach (\range(1, 5) as $id) {
                $bus->bus()->send(new StoreCustomer((string) $id, '', ''));
            }
            $bus->run();

            self::assertEquals(5, $bus->database->execute('SELECT number FROM counter')->value());
            $bus->assertSent(CustomerStored::class)->times(5);
            $bus->assertSent(StoreCustomer::class)->times(5);
        }, runs: 3, faults: Faults::all(), database: function () use (&$made): Database {
            $this->dropSchema();
            $this->makeSchema();
            $made[] = $database = Database::connect($this->databaseDsn());
            $database->execute('CREATE TABLE counter (number INTEGER NOT NULL)');
            $database->execute('INSERT INTO counter VALUES (0)');

            return $database;
        });

        self::assertCount(3, $made);
        $this->expectException(PoolClosedException::class);
        $made[2]->execute('SELECT 1');
    }

    private static function counting(): object
    {
        return new class {
            #[CommandHandler]
            public function count(StoreCustomer $command, Transaction $transaction, Context $context): void
            {
                $number = $transaction->execute('SELECT number FROM counter FOR UPDATE')->value();
                $transaction->execute('UPDATE counter SET number = ?', [$number + 1]);
                $context->publish(new CustomerStored($command->id));
            }
        };
    }
}
