<?php

declare(strict_types=1);

namespace Weft\Pool;

/** A task that holds a resource of a pool, from {@see Pool::holders()}, or from the hook `leaked` once it has held it for longer than the leak threshold. */
final class Holder implements \Stringable
{
    /**
     * @param ?int $task id of the task that borrowed it, 0 for code outside of tasks
     * @param float $held seconds
     * @param ?string $file the file in which it was borrowed
     * @param ?string $statement the last statement, for a database
     * @param ?string $stack the call stack of the borrow, one call per line, the innermost first
     */
    public function __construct(
        public readonly string $pool,
        public readonly ?int $task,
        public readonly float $held,
        public readonly ?string $file,
        public readonly int $line,
        public readonly ?string $statement,
        public readonly ?string $stack,
    ) {
    }

    /**
     * @internal
     *
     * @param array{?int, float, ?string, int, ?string, ?string} $holder
     */
    public static function of(string $pool, array $holder): self
    {
        [$task, $held, $file, $line, $statement, $stack] = $holder;

        return new self($pool, $task, $held, $file, $line, $statement, $stack);
    }

    public function __toString(): string
    {
        $who = $this->task === 0 ? 'code outside of tasks' : "task #{$this->task}";
        $statement = $this->statement === null ? '' : ", last statement: {$this->statement}";
        $stack = $this->stack === null ? '' : "\n  " . \str_replace("\n", "\n  ", $this->stack);

        return \sprintf('pool "%s": %s holds a resource for %.3f s%s, borrowed at%s', $this->pool, $who, $this->held, $statement, $stack);
    }
}
