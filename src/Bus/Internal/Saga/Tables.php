<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Saga;

use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Catalog;
use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Rename;
use Weft\Sql\Internal\Schema\Step;
use Weft\Sql\Internal\Schema\Table;
use Weft\Sql\Internal\Schema\Type;
use Weft\Sql\Internal\Schema\Version;

/**
 * The tables of sagas and of the values associated with them.
 *
 * @internal
 */
final class Tables
{
    /** For sagas that have expired and are to be ended. */
    private const EXPIRY_INDEX = ['saga', 'status', 'expires_at'];

    public static function component(): Component
    {
        // Until 0.1: weft_saga_values.
        $associations = new Rename('weft_saga_values', self::associations());

        return new Component('sagas', 'weft_sagas', static fn(): array => [self::sagas(), self::associations()], [
            new Version(2, '0.2', 'weft_saga_associations', static fn(Driver $driver): array => [...$associations->expand($driver), self::addExpiry()], $associations->contract(...)),
        ]);
    }

    private static function addExpiry(): Step
    {
        return new Step(
            'add an index on expiry to weft_sagas',
            ['CREATE INDEX weft_sagas_expiry ON weft_sagas (' . \implode(', ', self::EXPIRY_INDEX) . ')'],
            static fn(Catalog $catalog): bool => !$catalog->hasIndex('weft_sagas', self::EXPIRY_INDEX, unique: false),
        );
    }

    private static function sagas(): Table
    {
        return Table::named('weft_sagas')
            ->column('saga', Type::id(100))
            ->column('id', Type::id(200))
            ->column('version', Type::bigint())
            ->column('status', Type::id(16))
            ->column('schema_version', Type::integer())
            ->column('state', Type::text())
            ->column('started_at', Type::bigint())
            ->column('expires_at', Type::bigint(), nullable: true)
            ->column('ended_at', Type::bigint(), nullable: true)
            ->column('reason', Type::text())
            ->primaryKey('saga', 'id')
            ->index(['saga', 'started_at'], as: 'started_at')
            ->index(self::EXPIRY_INDEX, as: 'expiry');
    }

    private static function associations(): Table
    {
        return Table::named('weft_saga_associations')
            ->column('saga', Type::id(100))
            ->column('name', Type::id(100))
            ->column('value', Type::id(200))
            ->column('id', Type::id(200))
            ->primaryKey('saga', 'name', 'value')
            ->index(['saga', 'id'], as: 'id');
    }
}
