<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

/**
 * The position up to which no event can appear any more, in a database that assigns positions before commits.
 *
 * A missing position belongs to a transaction that was rolled back or is still running. The positions that are missing below one that was seen
 * were taken before it. When every transaction that wrote events after it was seen has ended, they stay missing.
 *
 * @internal
 */
final class Horizon
{
    /** Number of marks; positions beyond them wait a little longer. */
    private const MAX_MARKS = 64;

    /** How the virtual id of a prepared transaction may begin: `PREPARE TRANSACTION` and a restart of the server give it another one. */
    private const PREPARED = '-1/';

    /** Every position up to here has its event or never will. */
    private int $settled = 0;

    /** @var array<int, array{int, list<string>}> by number: a position that was seen, and the transactions that wrote events after that */
    private array $marks = [];

    /** The number of the next mark. */
    private int $next = 0;

    /** The number of marks so far, for {@see advance()}; 0 when it has nothing to settle. */
    public function marked(): int
    {
        return $this->marks === [] ? 0 : $this->next;
    }

    /** The position up to which rows that are read from now on are complete, for {@see within()}. */
    public function settled(): int
    {
        return $this->settled;
    }

    /**
     * Those of the rows that nothing can come before.
     *
     * @param list<array<string, mixed>> $rows    by position
     * @param int                        $after   the position before the first; settled
     * @param int                        $settled as {@see settled()} returned it before the rows were read: meanwhile other readers settle more
     * @return list<array<string, mixed>>
     */
    public static function within(array $rows, int $after, int $settled): array
    {
        $safe = [];
        foreach ($rows as $row) {
            if ($row['position'] !== $after + 1 && $row['position'] > $settled) {
                break;
            }
            $safe[] = $row;
            $after = $row['position'];
        }

        return $safe;
    }

    /** Whether marking this position is worth asking for the transactions that write events. */
    public function wants(int $position): bool
    {
        return \count($this->marks) < self::MAX_MARKS && $position > ($this->marks[\array_key_last($this->marks) ?? -1][0] ?? $this->settled);
    }

    /**
     * @param int          $position that was seen
     * @param list<string> $writers  the transactions that wrote events after that
     */
    public function mark(int $position, array $writers): void
    {
        $writers === [] ? $this->settle($position) : $this->marks[$this->next++] = [$position, $writers];
    }

    /**
     * @param int          $marked  as {@see marked()} returned it before the transactions were asked for
     * @param list<string> $writers the transactions that write events now
     */
    public function advance(int $marked, array $writers): void
    {
        if (\array_filter($writers, static fn(string $writer): bool => \str_starts_with($writer, self::PREPARED)) !== []) {
            return;
        }
        foreach ($this->marks as $number => [$position, $before]) {
            if ($number < $marked && \array_intersect($before, $writers) === []) {
                $this->settle($position);
            }
        }
    }

    private function settle(int $position): void
    {
        $this->settled = \max($this->settled, $position);
        $this->marks = \array_filter($this->marks, fn(array $mark): bool => $mark[0] > $this->settled);
    }
}
