<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Sql\Driver;

/**
 * How the tables of a {@see Component} change from the version before to this one.
 *
 * Workers of both versions run at the same time during a deployment. `$expand` makes the tables usable for both: it adds, and keeps old
 * names alive by views, triggers or columns. `$contract` removes what only workers of the version before need. It runs when an operator
 * says that there are none left (`weft setup --contract`), at the latest before the next version.
 *
 * @internal
 */
final class Version
{
    /**
     * @param int                                    $number   from 2 on
     * @param string                                 $release  of Weft that had it first
     * @param string                                 $marker   a table that this version has and the one before has not, or `table.column`:
     *                                                         tells the version of tables that nobody has recorded
     * @param \Closure(Driver): list<Step>           $expand
     * @param (\Closure(Driver): list<Step>)|null    $contract null where nothing is left behind
     */
    public function __construct(
        public readonly int $number,
        public readonly string $release,
        public readonly string $marker,
        private readonly \Closure $expand,
        private readonly ?\Closure $contract = null,
    ) {}

    /** @return list<Step> */
    public function expand(Driver $driver): array
    {
        return ($this->expand)($driver);
    }

    /** @return list<Step> */
    public function contract(Driver $driver): array
    {
        return $this->contract === null ? [] : ($this->contract)($driver);
    }
}
