<?php

declare(strict_types=1);

namespace Weft\Tests\Lock;

use Weft\Lock\Locks;
use Weft\Lock\LockStore;
use Weft\Lock\SqlStore;
use Weft\Sql\Transaction;
use Weft\Tests\Sql\Support\Databases;
use Weft\UsageError;

use function Weft\run;

final class SqliteStoreTest extends LockStoreConformance
{
    use Databases;

    protected function store(): LockStore
    {
        return new SqlStore($this->database('sqlite'));
    }

    public function testALockThatIsAskedForInATransactionOfItsTaskIsRefusedByTheStatementThatAcquiresIt(): void
    {
        $database = $this->database('sqlite');
        $locks = Locks::database($database);
        $locks->synchronized('first', static fn (): bool => true);

        $refused = run(static fn (): UsageError => $database->transaction(static function (Transaction $transaction) use ($locks): UsageError {
            $transaction->execute('CREATE TABLE held (a)')->affected();
            try {
                $locks->synchronized('invoices', static fn () => self::fail('entered'));
            } catch (UsageError $refused) {
                return $refused;
            }
        }));

        self::assertStringContainsString('[statement: INSERT INTO weft_locks', $refused->getMessage());
        self::assertSame('done', $locks->synchronized('invoices', static fn (): string => 'done'));
    }
}
