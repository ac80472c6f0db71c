<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Table;
use Weft\Sql\Internal\Schema\Type;

/**
 * The table of {@see \Weft\Http\Sessions\SqlStore}.
 *
 * @internal
 */
final class SessionTables
{
    public static function component(): Component
    {
        return new Component('sessions', 'weft_sessions', static fn(): array => [
            Table::named('weft_sessions')
                ->column('id', Type::id(64), suffix: 'PRIMARY KEY')
                ->column('version', Type::integer())
                ->column('data', Type::text())
                ->column('expires_at', Type::double()),
        ], since: '0.2');
    }
}
