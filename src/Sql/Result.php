<?php

declare(strict_types=1);

namespace Weft\Sql;

/**
 * The result of a statement.
 *
 * In a {@see Transaction} a result is lazy: the statement travels to the database when somebody asks for the result or
 * the transaction ends, together with everything else that waits by then.
 *
 * @implements \IteratorAggregate<int, array<string, mixed>>
 */
final class Result implements \IteratorAggregate, \Countable
{
    /** @var array{list<string>, list<array<string, mixed>>, int, int|null, list<mixed>}|null columns, rows, affected, last id, further results */
    private ?array $fields;

    /**
     * @internal made by {@see Database} and {@see Transaction}
     *
     * @param array{list<string>, list<array<string, mixed>>, int, int|null, list<mixed>}|null $fields
     */
    public function __construct(
        ?array $fields,
        private ?Transaction $transaction = null,
        private readonly int $index = 0,
    ) {
        $this->fields = $fields;
    }

    /** @return list<array<string, mixed>> every row, keyed by column name */
    public function rows(): array
    {
        return $this->fields()[1];
    }

    /** @return array<string, mixed>|null the first row; null when there is none */
    public function first(): ?array
    {
        return $this->fields()[1][0] ?? null;
    }

    /** The first column of the first row; null when there is no row. */
    public function value(): mixed
    {
        $row = $this->first();

        return $row === null ? null : \reset($row);
    }

    /** @return list<mixed> the first column of every row */
    public function column(): array
    {
        return \array_map(static fn (array $row): mixed => \reset($row), $this->fields()[1]);
    }

    /** @return list<string> column names in order, also when there are no rows */
    public function columns(): array
    {
        return $this->fields()[0];
    }

    /** Rows inserted, updated or deleted; for a query the rows returned. */
    public function affected(): int
    {
        return $this->fields()[2];
    }

    /** MySQL's `AUTO_INCREMENT` value or SQLite's rowid of the last insert; null for PostgreSQL, where `RETURNING` says it. */
    public function lastInsertId(): ?int
    {
        return $this->fields()[3];
    }

    /** @return list<self> what a statement with several results returned after the first, as `CALL` in MySQL */
    public function further(): array
    {
        /** @var list<array{list<string>, list<array<string, mixed>>, int, int|null, list<mixed>}> $further */
        $further = $this->fields()[4];

        return \array_map(static fn (array $fields): self => new self($fields), $further);
    }

    public function count(): int
    {
        return \count($this->fields()[1]);
    }

    /** @return \ArrayIterator<int, array<string, mixed>> */
    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->fields()[1]);
    }

    /** @return array{list<string>, list<array<string, mixed>>, int, int|null, list<mixed>} */
    private function fields(): array
    {
        if ($this->fields === null) {
            \assert($this->transaction !== null);
            $this->fields = $this->transaction->resolve($this->index);
            $this->transaction = null;
        }

        return $this->fields;
    }
}
