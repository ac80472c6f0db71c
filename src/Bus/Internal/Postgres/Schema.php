<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Sql\Database;
use Weft\Sql\Transaction;

/**
 * The broker's tables.
 *
 * A message's id says all by which it is found: the queue in the upper bits, then the priority, then a running number. So one
 * index holds every queue, each in the order it is taken; and since taking a message changes only columns that no index
 * knows, the new version of its row stays in its page (heap-only tuple) and needs no entry anywhere.
 *
 * @internal
 */
final class Schema
{
    /** Bits of the sequence number, and of the number including the priority. */
    public const NUMBER_BITS = 40;
    public const QUEUE_BITS = 44;

    public const HIGHEST_PRIORITY = 9;

    private const STATEMENTS = [
        "SELECT pg_advisory_xact_lock(hashtext('weft tables'))",
        'CREATE TABLE IF NOT EXISTS weft_queues (
            id INT PRIMARY KEY CHECK (id BETWEEN 1 AND 524287), name VARCHAR(255) COLLATE "C" NOT NULL UNIQUE)',
        'CREATE TABLE IF NOT EXISTS weft_bindings (
            type TEXT COLLATE "C" NOT NULL, queue_id INT NOT NULL REFERENCES weft_queues ON DELETE CASCADE, PRIMARY KEY (type, queue_id))',
        'CREATE SEQUENCE IF NOT EXISTS weft_message_numbers MAXVALUE 1099511627775',
        'CREATE SEQUENCE IF NOT EXISTS weft_consumer_numbers AS INT CYCLE',
        // Vacuums after a fixed number of dead rows, not after a fifth of the table.
        'CREATE TABLE IF NOT EXISTS weft_messages (
            id BIGINT PRIMARY KEY, consumer_id INT, redelivered BOOLEAN NOT NULL DEFAULT FALSE, type TEXT NOT NULL, headers TEXT NOT NULL, body BYTEA NOT NULL)
            WITH (fillfactor = 80, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)',
        'CREATE TABLE IF NOT EXISTS weft_consumers (
            id INT PRIMARY KEY, queue_id INT NOT NULL, first BIGINT, last BIGINT)
            WITH (fillfactor = 50, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0)',
    ];

    /** An account without the permission to create tables can use existing ones. */
    public static function ensure(Database $database): void
    {
        if ($database->execute("SELECT to_regclass('weft_consumers') IS NOT NULL")->value()) {
            return;
        }
        $database->transaction(static function (Transaction $transaction): void {
            foreach (self::STATEMENTS as $statement) {
                $transaction->execute($statement);
            }
        });
    }
}
