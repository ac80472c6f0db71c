<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Table;
use Weft\Sql\Internal\Schema\Type;

/**
 * The tables of {@see \Weft\EventSourcing\EventStore}.
 *
 * @internal
 */
final class Tables
{
    public static function component(): Component
    {
        return new Component('event store', 'weft_events', self::tables(...));
    }

    /** @return list<Table> */
    private static function tables(Driver $driver): array
    {
        $tables = [
            self::events($driver),
            Table::named('weft_snapshots')
                ->column('stream', Type::id(200), suffix: 'PRIMARY KEY')
                ->column('version', Type::bigint())
                ->column('schema_version', Type::integer())
                ->column('state', Type::text()),
            Table::named('weft_unique_values')
                ->column('name', Type::id(100))
                ->column('value', Type::id(200))
                ->column('owner', Type::id(200))
                ->primaryKey('name', 'value'),
            Table::named('weft_projections')
                ->column('name', Type::id(200), suffix: 'PRIMARY KEY')
                ->column('position', Type::bigint()),
        ];
        if ($driver === Driver::Mysql) {
            $tables[] = Table::named('weft_event_counter')
                ->column('id', Type::of('TINYINT'), suffix: 'PRIMARY KEY')
                ->column('position', Type::bigint())
                ->after('INSERT IGNORE INTO weft_event_counter VALUES (1, 0)');
        }

        return $tables;
    }

    private static function events(Driver $driver): Table
    {
        $table = Table::named('weft_events');
        $table = $driver === Driver::Mysql
            ? $table->column('position', Type::bigint(), suffix: 'PRIMARY KEY')
            : $table->serial($driver, 'position', always: false);

        return $table
            ->column('stream', Type::id(200))
            ->column('version', Type::bigint())
            ->column('type', Type::id(200))
            ->column('schema_version', Type::integer())
            ->column('headers', Type::text())
            ->column('body', Type::text())
            ->column('recorded_at', Type::bigint())
            ->unique(['stream', 'version']);
    }
}
