<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;

use function Weft\async;
use function Weft\delay;

final class ReadOnlyDatabaseTest extends BusTestCase
{
    use Servers;

    private const MESSAGES = 6;

    /** A server that was the second of two takes no changes until it is told that it is the first. */
    public function testADatabaseThatTakesNoChangesForAWhileDeadLettersNothing(): void
    {
        $this->inRuntime(function (): void {
            $direct = $this->database();
            $role = "role_{$this->schema}";
            $direct->execute("CREATE ROLE {$role} LOGIN SUPERUSER PASSWORD 'secret'");
            $through = \preg_replace('~//[^@]*@~', "//{$role}:secret@", $this->databaseDsn());
            $calls = new \ArrayObject();
            $bus = Bus::connect($this->brokerDsn(), Database::connect($through, new PoolOptions(size: 12)))->handlers(new class ($calls) {
                public function __construct(private readonly \ArrayObject $calls) {}

                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): void
                {
                    $this->calls[] = $command->id;
                    $transaction->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'stored']);
                }
            });
            try {
                $bus->queue(self::QUEUE)->declare();
                $direct->execute("ALTER ROLE {$role} SET default_transaction_read_only = on");
                $direct->execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{$role}'");
                $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 10));
                $bus->sendAll(self::customers(self::MESSAGES));
                while (\count($calls) < self::MESSAGES) {
                    delay(0.01);
                }
                delay(1.0);
                self::assertSame([0, 0, 0], [$bus->admin()->stats()->failed, $bus->admin()->stats()->deadLettered, self::effects($direct)]);
                self::assertLessThan(10 * self::MESSAGES, \count($calls), 'not in a hot loop');
                $direct->execute("ALTER ROLE {$role} SET default_transaction_read_only = off");
                $direct->execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{$role}'");
                while (self::effects($direct) < self::MESSAGES) {
                    delay(0.02);
                }
                $bus->stop();
                $consuming->await();
                self::assertSame([0, 0, self::MESSAGES], [$bus->admin()->stats()->failed, $bus->queue(self::QUEUE)->deadLetters()->count(), self::effects($direct)]);
            } finally {
                $bus->close();
                $direct->execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{$role}'");
                $direct->execute("REASSIGN OWNED BY {$role} TO CURRENT_USER");
                $direct->execute("DROP OWNED BY {$role}");
                $direct->execute("DROP ROLE {$role}");
                $direct->close();
            }
        });
    }

    private static function effects(Database $database): int
    {
        return $database->execute('SELECT count(*) FROM effects')->value();
    }
}
