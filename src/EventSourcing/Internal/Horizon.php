<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

/**
 * The position up to which no event can appear any more, in a database that assigns positions before commits.
 *
 * A missing position belongs to a transaction that was rolled back or is still running. A transaction has its id before it takes a
 * position. When every transaction that was running when a larger position was seen has ended, the positions that are missing below it stay
 * missing.
 *
 * @internal
 */
final class Horizon
{
    /** Number of marks; positions beyond them wait a little longer. */
    private const MAX_MARKS = 64;

    /** Every position up to here has its event or never will. */
    private int $settled = 0;

    /** @var list<array{int, int}> a position that was seen, and a transaction id that was given out after that */
    private array $marks = [];

    /**
     * Those of the rows that nothing can come before.
     *
     * @param list<array<string, mixed>> $rows  of one snapshot, by position, with its `xmin`
     * @param int                        $after the position before the first; settled
     * @return list<array<string, mixed>>
     */
    public function within(array $rows, int $after): array
    {
        if ($rows === []) {
            return [];
        }
        $this->advance($rows[0]['xmin']);
        $safe = [];
        foreach ($rows as $row) {
            if ($row['position'] !== $after + 1 && $row['position'] > $this->settled) {
                break;
            }
            $safe[] = $row;
            $after = $row['position'];
        }

        return $safe;
    }

    /** Whether marking this position is worth a transaction id. */
    public function wants(int $position): bool
    {
        return \count($this->marks) < self::MAX_MARKS && $position > ($this->marks[\count($this->marks) - 1][0] ?? $this->settled);
    }

    /**
     * @param int $position    that was seen
     * @param int $transaction an id given out since. The upper end of the snapshot it was seen in would not do: PostgreSQL has
     *                         there the successor of the last one that has ended, and younger ones may run and have a position.
     */
    public function mark(int $position, int $transaction): void
    {
        $this->marks[] = [$position, $transaction];
    }

    /** Every transaction with a smaller id has ended. */
    private function advance(int $xmin): void
    {
        while ($this->marks !== [] && $this->marks[0][1] <= $xmin) {
            $this->settled = \max($this->settled, \array_shift($this->marks)[0]);
        }
    }
}
