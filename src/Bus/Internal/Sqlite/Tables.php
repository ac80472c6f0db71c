<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sqlite;

use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Catalog;
use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Rename;
use Weft\Sql\Internal\Schema\Step;
use Weft\Sql\Internal\Schema\Table;
use Weft\Sql\Internal\Schema\Type;
use Weft\Sql\Internal\Schema\Version;

/**
 * The tables of the SQLite transport, see {@see Store}.
 *
 * @internal
 */
final class Tables
{
    public static function component(): Component
    {
        return new Component('transport', 'weft_queues', self::tables(...), [
            // Until 0.1: weft_claims, and weft_consumers without queue_id.
            new Version(2, '0.2', 'weft_claimed_ranges', self::expandTo2(...), self::claims()->contract(...)),
        ]);
    }

    /** @return list<Table> */
    private static function tables(): array
    {
        return [
            Table::named('weft_queues')
                ->column('id', Type::of('INTEGER'), suffix: 'PRIMARY KEY')
                ->column('name', Type::of('TEXT'))
                ->column('taken', Type::of('INTEGER'), suffix: 'DEFAULT 0')
                ->unique(['name']),
            Table::named('weft_bindings')
                ->column('type', Type::of('TEXT'))
                ->column('queue_id', Type::of('INTEGER'))
                ->primaryKey('type', 'queue_id')
                ->suffix('WITHOUT ROWID'),
            Table::named('weft_messages')
                ->column('id', Type::of('INTEGER'), suffix: 'PRIMARY KEY')
                ->column('type', Type::of('TEXT'))
                ->column('redelivered', Type::of('INTEGER'))
                ->column('headers', Type::of('TEXT'))
                ->column('body', Type::of('BLOB')),
            Table::named('weft_consumers')
                ->serial(Driver::Sqlite, 'id', always: false)
                // 0: a consumer of Weft 0.1, whose queue is not known.
                ->column('queue_id', Type::of('INTEGER'), suffix: 'DEFAULT 0')
                ->column('lock', Type::of('TEXT')),
            self::claimedRanges(),
        ];
    }

    private static function claimedRanges(): Table
    {
        return Table::named('weft_claimed_ranges')
            ->serial(Driver::Sqlite, 'id', always: false)
            ->column('queue_id', Type::of('INTEGER'))
            ->column('consumer_id', Type::of('INTEGER'), nullable: true)
            ->column('batch', Type::of('INTEGER'))
            ->column('first', Type::of('INTEGER'))
            ->column('last', Type::of('INTEGER'))
            ->column('redelivered', Type::of('INTEGER'), suffix: 'DEFAULT 0');
    }

    private static function claims(): Rename
    {
        return new Rename('weft_claims', self::claimedRanges());
    }

    /** @return list<Step> */
    private static function expandTo2(Driver $driver): array
    {
        return [
            new Step(
                'add column weft_consumers.queue_id',
                ['ALTER TABLE weft_consumers ADD COLUMN queue_id INTEGER NOT NULL DEFAULT 0'],
                static fn(Catalog $catalog): bool => $catalog->has('weft_consumers') && !$catalog->hasColumn('weft_consumers', 'queue_id'),
            ),
            ...self::claims()->expand($driver),
        ];
    }
}
