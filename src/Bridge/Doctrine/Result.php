<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine;

use Doctrine\DBAL\Driver\Result as DbalResult;

/** The rows of a statement, all of them in memory. */
final class Result implements DbalResult
{
    private int $next = 0;

    /**
     * @internal made by {@see Connection}
     *
     * @param list<string> $columns
     * @param list<list<scalar|null>> $rows
     */
    public function __construct(private readonly array $columns, private array $rows, private readonly int $affected)
    {
    }

    /** @return list<mixed>|false */
    public function fetchNumeric(): array|false
    {
        return $this->rows[$this->next++] ?? false;
    }

    /** @return array<string, mixed>|false of two columns with the same name the last */
    public function fetchAssociative(): array|false
    {
        $row = $this->fetchNumeric();

        return $row === false ? false : \array_combine($this->columns, $row);
    }

    public function fetchOne(): mixed
    {
        $row = $this->fetchNumeric();

        return $row === false ? false : $row[0];
    }

    /** @return list<list<mixed>> */
    public function fetchAllNumeric(): array
    {
        $rows = \array_slice($this->rows, $this->next);
        $this->next = \count($this->rows);

        return $rows;
    }

    /** @return list<array<string, mixed>> */
    public function fetchAllAssociative(): array
    {
        return \array_map(fn(array $row): array => \array_combine($this->columns, $row), $this->fetchAllNumeric());
    }

    /** @return list<mixed> */
    public function fetchFirstColumn(): array
    {
        return \array_map(static fn(array $row): mixed => $row[0], $this->fetchAllNumeric());
    }

    public function rowCount(): int
    {
        return $this->affected;
    }

    public function columnCount(): int
    {
        return \count($this->columns);
    }

    public function getColumnName(int $index): string
    {
        return $this->columns[$index] ?? throw \Doctrine\DBAL\Exception\InvalidColumnIndex::new($index);
    }

    public function free(): void
    {
        $this->rows = [];
    }
}
