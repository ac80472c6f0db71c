<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Sql\Driver;

/**
 * Tables that belong together and have one version: those of the bus, of sagas, of locks, …
 *
 * @internal
 */
final class Component
{
    /** The version of the current tables. */
    public readonly int $version;

    /**
     * @param string                         $name     in the table `weft_schema`, at most 50 bytes
     * @param string                         $marker   a table that version 1 has
     * @param \Closure(Driver): list<Table>  $tables   of the current version
     * @param list<Version>                  $versions from 2 on, in order
     * @param (\Closure(Driver): list<string>)|null $before statements that come before the tables and may run again, such as for sequences
     * @param string                         $since    release of Weft that had the component first
     */
    public function __construct(
        public readonly string $name,
        private readonly string $marker,
        private readonly \Closure $tables,
        public readonly array $versions = [],
        private readonly ?\Closure $before = null,
        private readonly string $since = '0.1',
    ) {
        $this->version = 1 + \count($versions);
    }

    /** @return list<Table> */
    public function tables(Driver $driver): array
    {
        return ($this->tables)($driver);
    }

    /** @return list<string> statements that come before the tables are created */
    public function before(Driver $driver): array
    {
        return $this->before === null ? [] : ($this->before)($driver);
    }

    /** The current version; null where it is the first. */
    public function latest(): ?Version
    {
        return $this->versions[$this->version - 2] ?? null;
    }

    /** The version of the tables of a release of Weft, such as `0.1`; 0 where it had none of them. */
    public function versionOf(string $release): int
    {
        if (\version_compare($this->since, $release, '>')) {
            return 0;
        }

        return 1 + \count(\array_filter($this->versions, static fn(Version $version): bool => \version_compare($version->release, $release, '<=')));
    }

    /** The version of tables that are not recorded; 0 where there are none. */
    public function detect(Catalog $catalog): int
    {
        for ($version = $this->version; $version > 1; $version--) {
            if ($catalog->holds($this->versions[$version - 2]->marker)) {
                return $version;
            }
        }

        return $catalog->holds($this->marker) ? 1 : 0;
    }
}
