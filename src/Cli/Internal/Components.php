<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Symfony\Component\Console\Exception\InvalidArgumentException;
use Weft\Bus\Internal\ClaimCheckTables;
use Weft\Bus\Internal\Persistence\Tables as BusTables;
use Weft\Bus\Internal\Postgres\Tables as PostgresTables;
use Weft\Bus\Internal\Saga\Tables as SagaTables;
use Weft\Bus\Internal\Sqlite\Tables as SqliteTables;
use Weft\EventSourcing\Internal\Tables as EventTables;
use Weft\Http\Internal\SessionTables;
use Weft\Lock\Internal\Tables as LockTables;
use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Component;

/**
 * Everything of Weft that has tables.
 *
 * @internal
 */
final class Components
{
    public const NAMES = 'bus, sagas, claim checks, transport, locks, sessions of HTTP, event store';

    /** @return array<string, Component> by name */
    public static function of(Driver $driver): array
    {
        $components = [BusTables::component(), SagaTables::component(), ClaimCheckTables::component(), ...match ($driver) {
            Driver::Postgres => [PostgresTables::component()],
            Driver::Sqlite => [SqliteTables::component()],
            Driver::Mysql => [],
        }, LockTables::component(), SessionTables::component(), EventTables::component()];

        return \array_combine(\array_map(static fn(Component $component): string => $component->name, $components), $components);
    }

    /**
     * @param list<string> $names
     * @return list<Component>
     * @throws InvalidArgumentException for a name that is none of a component
     */
    public static function named(Driver $driver, array $names): array
    {
        $components = self::of($driver);

        return \array_map(static fn(string $name): Component => $components[$name]
            ?? throw new InvalidArgumentException("There is no component \"{$name}\" for {$driver->value}. The components are: " . \implode(', ', \array_keys($components)) . '.'), $names);
    }
}
