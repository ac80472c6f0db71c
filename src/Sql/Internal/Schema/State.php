<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

/**
 * The version of a component's tables in a database.
 *
 * @internal
 */
final class State
{
    /**
     * @param int $version 0 where there are no tables
     * @param int $minimum the oldest version of Weft's tables that a worker may know and still use these
     */
    public function __construct(
        public readonly int $version,
        public readonly int $minimum,
    ) {}
}
