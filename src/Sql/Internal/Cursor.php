<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

/**
 * A cursor that a transaction has declared.
 *
 * @internal
 */
final class Cursor
{
    /**
     * @param int $number among those that are open
     * @param int $depth of the nested transaction whose undoing takes it along; 0: of none
     */
    public function __construct(public readonly int $number, public int $depth)
    {
    }

    public function name(): string
    {
        return "weft_{$this->number}";
    }
}
