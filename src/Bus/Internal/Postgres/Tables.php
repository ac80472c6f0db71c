<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Table;
use Weft\Sql\Internal\Schema\Type;

/**
 * The tables of the PostgreSQL transport.
 *
 * A message's id contains everything by which it is found: the queue in the upper bits, then the priority, then a sequence number. One
 * index therefore holds every queue in the order of delivery. Taking a message changes only columns without an index, so the new version
 * of its row stays in its page (heap-only tuple) and needs no index entry.
 *
 * @internal
 */
final class Tables
{
    /** Bits of the sequence number, and of the number including the priority. */
    public const NUMBER_BITS = 40;
    public const QUEUE_BITS = 44;

    public const HIGHEST_PRIORITY = 9;

    public static function component(): Component
    {
        return new Component('transport', 'weft_queues', self::tables(...), before: static fn(): array => [
            'CREATE SEQUENCE IF NOT EXISTS weft_message_numbers MAXVALUE 1099511627775',
            'CREATE SEQUENCE IF NOT EXISTS weft_consumer_numbers AS INT CYCLE',
        ]);
    }

    /** @return list<Table> */
    private static function tables(): array
    {
        return [
            Table::named('weft_queues')
                ->column('id', Type::integer(), suffix: 'PRIMARY KEY CHECK (id BETWEEN 1 AND 524287)')
                ->column('name', Type::id(255))
                ->unique(['name']),
            Table::named('weft_bindings')
                ->column('type', Type::of('TEXT COLLATE "C"'))
                ->column('queue_id', Type::integer(), suffix: 'REFERENCES weft_queues ON DELETE CASCADE')
                ->primaryKey('type', 'queue_id'),
            // Vacuums after a fixed number of dead rows, not after a fifth of the table.
            Table::named('weft_messages')
                ->column('id', Type::bigint(), suffix: 'PRIMARY KEY')
                ->column('consumer_id', Type::integer(), nullable: true)
                ->column('redelivered', Type::of('BOOLEAN'), suffix: 'DEFAULT FALSE')
                ->column('type', Type::of('TEXT'))
                ->column('headers', Type::text())
                ->column('body', Type::bytes())
                ->suffix('WITH (fillfactor = 80, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)'),
            Table::named('weft_consumers')
                ->column('id', Type::integer(), suffix: 'PRIMARY KEY')
                ->column('queue_id', Type::integer())
                ->column('first', Type::bigint(), nullable: true)
                ->column('last', Type::bigint(), nullable: true)
                ->suffix('WITH (fillfactor = 50, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0)'),
        ];
    }
}
