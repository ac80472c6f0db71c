<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Sql\Driver;

/**
 * Statements of an upgrade that belong together.
 *
 * PostgreSQL and SQLite run a step in one transaction. MySQL commits each statement that changes a table, so an interrupted step begins
 * again: there every statement must be one that may run twice, or `$needed` must tell that it has run.
 *
 * @internal
 */
final class Step
{
    /**
     * @param string                        $summary    what it does, for people: `rename weft_keys to weft_blocked_keys`
     * @param non-empty-list<string>        $statements
     * @param (\Closure(Catalog): bool)|null $needed     whether the database still needs it; null for always
     * @param bool                          $data       whether the statements only change rows, so that MySQL can run them in a transaction
     */
    public function __construct(
        public readonly string $summary,
        public readonly array $statements,
        private readonly ?\Closure $needed = null,
        public readonly bool $data = false,
    ) {}

    /** Creates a table that the version before does not have. */
    public static function create(Table $table, Driver $driver): self
    {
        return new self("create table {$table->name}", $table->create($driver), static fn(Catalog $catalog): bool => !$catalog->has($table->name));
    }

    public function isNeeded(Catalog $catalog): bool
    {
        return $this->needed === null || ($this->needed)($catalog);
    }
}
