<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Rename;
use Weft\Sql\Internal\Schema\Table;
use Weft\Sql\Internal\Schema\Type;
use Weft\Sql\Internal\Schema\Version;

/**
 * The table of {@see \Weft\Bus\Claims\DatabaseStore}.
 *
 * @internal
 */
final class ClaimCheckTables
{
    public static function component(): Component
    {
        $table = Table::named('weft_claim_checks')
            ->column('id', Type::of('VARCHAR(64)'), suffix: 'PRIMARY KEY')
            ->column('kept_at', Type::bigint())
            ->column('body', Type::bytes());
        // Until 0.1: weft_bodies.
        $rename = new Rename('weft_bodies', $table);

        return new Component('claim checks', 'weft_bodies', static fn(): array => [$table], [
            new Version(2, '0.2', 'weft_claim_checks', $rename->expand(...), $rename->contract(...)),
        ]);
    }
}
