<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Native\SqlCursor;
use Weft\Runtime\Internal\WaitsFor;

/**
 * The rows of a cursor, one after the other.
 *
 * @internal
 */
final class Rows
{
    /** @return \Generator<int, array<string, mixed>> that ends the query when it is left early */
    #[WaitsFor('the rows of a query')]
    public static function of(SqlCursor $cursor, ?HookRunner $hookRunner): \Generator
    {
        try {
            $key = 0;
            /** @var list<array<string, mixed>> $rows */
            while (($rows = HookRunner::through($hookRunner, $cursor->next())) !== []) {
                foreach ($rows as $row) {
                    yield $key++ => $row;
                }
            }
        } finally {
            $cursor->close();
        }
    }
}
