<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Divides the fibers of a process among its servers, so that together they never need more than there are.
 *
 * Each server claims as many handlers as its limits allow. If the sum exceeds `maxFibers`, every server gets a proportional share,
 * at least 1, and lowers its limits to it.
 *
 * @internal
 */
final class FiberShares
{
    /** @var array<int, array{int, \Closure(int): void}> the claim of a server and the function that receives its share */
    private array $claims = [];
    private int $last = 0;

    public function __construct(private int $fibers)
    {
    }

    /**
     * @param int $handlers at a time, 0 or more
     * @param \Closure(int): void $fit receives the share now and whenever it changes
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

    /** The system allows fewer fibers than expected. */
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
