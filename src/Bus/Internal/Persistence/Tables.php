<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Sql\Database;
use Weft\Sql\Internal\Schema;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

/**
 * Creates the tables of the bus where they are missing.
 *
 * @internal
 */
final class Tables
{
    public const NAMES = ['weft_inbox', 'weft_outbox', 'weft_redeliveries', 'weft_delayed', 'weft_schedules', 'weft_blocked_keys', 'weft_blocked_messages', 'weft_rate_limits'];

    /**
     * An account without the permission to create tables can use existing ones.
     *
     * @throws SqlException when they are missing and cannot be made
     */
    public static function ensure(Database $database): void
    {
        if (self::missing($database) === []) {
            return;
        }
        $database->transaction(static function (Transaction $transaction) use ($database): void {
            foreach ((new Dialect($database))->schema() as $statement) {
                $transaction->execute($statement);
            }
        });
    }

    /**
     * @return list<string> names of tables that are not there
     * @throws SqlException when the database cannot be asked
     */
    public static function missing(Database $database): array
    {
        return Schema::absent($database, self::NAMES);
    }
}
