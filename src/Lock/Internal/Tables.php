<?php

declare(strict_types=1);

namespace Weft\Lock\Internal;

use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Table;
use Weft\Sql\Internal\Schema\Type;

/**
 * The table of {@see \Weft\Lock\SqlStore}.
 *
 * @internal
 */
final class Tables
{
    public static function component(): Component
    {
        return new Component('locks', 'weft_locks', static fn(): array => [
            Table::named('weft_locks')
                ->column('name', Type::id(200), suffix: 'PRIMARY KEY')
                ->column('owner', Type::id(64))
                ->column('fence', Type::bigint())
                ->column('expires_at', Type::double()),
        ]);
    }
}
