<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

/**
 * The cursors of a transaction, and what becomes of them with its savepoints. Numbers are used again, so that few texts are
 * prepared.
 *
 * @internal
 */
final class Cursors
{
    /** @var array<int, Cursor> by number */
    private array $open = [];

    public function open(int $depth): Cursor
    {
        for ($number = 1; isset($this->open[$number]);) {
            ++$number;
        }

        return $this->open[$number] = new Cursor($number, $depth);
    }

    /** @return bool whether it is still there to be closed */
    public function close(Cursor $cursor, int $depth): bool
    {
        if (($this->open[$cursor->number] ?? null) !== $cursor) {
            return false;
        }
        if ($cursor->depth === $depth) {
            unset($this->open[$cursor->number]);
        }

        // From inside of a nested transaction the CLOSE may never be sent: the number stays taken.
        return true;
    }

    /** The nested transaction at this depth has become a part of the one around it. */
    public function released(int $depth): void
    {
        foreach ($this->open as $cursor) {
            $cursor->depth = \min($cursor->depth, $depth - 1);
        }
    }

    /** The nested transaction at this depth was undone, and what was declared in it. */
    public function undone(int $depth): void
    {
        $this->open = \array_filter($this->open, static fn (Cursor $cursor): bool => $cursor->depth < $depth);
    }
}
