<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Divides the fibers of a process among its servers: together they handle no more than there are fibers for.
 *
 * Each server says how many handlers its limits allow. Where the sum is more than `maxFibers`, every server gets its proportional
 * part, 1 at least, and fits its limits to that.
 *
 * @internal
 */
final class FiberShares
{
    /** @var array<int, array{int, \Closure(int): void}> how many a server wants, and what tells it how many it gets */
    private array $claims = [];
    private int $last = 0;

    public function __construct(private int $fibers)
    {
    }

    /**
     * @param int $handlers at a time, 0 or more
     * @param \Closure(int): void $fit called now, and again whenever the part changes
     *
     * @return int for `release()`
     */
    public function claim(int $handlers, \Closure $fit): int
    {
        $this->claims[++$this->last] = [$handlers, $fit];
        $this->divide();

        return $this->last;
    }

    public function release(int $claim): void
    {
        unset($this->claims[$claim]);
        $this->divide();
    }

    /** There are fewer fibers than it was thought. */
    public function shrink(int $fibers): void
    {
        $this->fibers = $fibers;
        $this->divide();
    }

    private function divide(): void
    {
        $wanted = \array_sum(\array_map(static fn(array $claim): int => $claim[0], $this->claims));
        foreach ($this->claims as [$handlers, $fit]) {
            $fit($wanted <= $this->fibers ? $handlers : \max((int) ($this->fibers * ($handlers / $wanted)), 1));
        }
    }
}
