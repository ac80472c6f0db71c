<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

/**
 * Up to which position nothing can appear any more, in a database that gives out positions before it commits.
 *
 * A missing position belongs to a transaction that was rolled back or has not ended. Whoever has a position has a transaction id
 * too, since before. So once every transaction that was running when a larger position was seen has ended, what is
 * still missing below it stays so.
 *
 * @internal
 */
final class Horizon
{
    /** Marks kept at most: what is beyond waits a little longer. */
    private const MARKS = 64;

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

    /** Whether it is worth a transaction id to say of this position that it was seen. */
    public function wants(int $position): bool
    {
        return \count($this->marks) < self::MARKS && $position > ($this->marks[\count($this->marks) - 1][0] ?? $this->settled);
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
