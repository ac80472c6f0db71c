<?php

declare(strict_types=1);

namespace Weft\Native;

/**
 * The pool of resources that PHP makes. Here they are numbers. Calls documented with an outcome start an operation.
 */
final class Pool
{
    /**
     * @param array<string, int|float|bool> $options see `Weft\Pool\PoolOptions::native()`
     * @param bool $checks an idle resource can be checked
     * @param bool $resets a returned resource has to be reset
     */
    public static function open(array $options, string $name, bool $checks, bool $resets): Pool
    {
    }

    /** Outcome: null. The minimum is being made from now on. */
    public function warmUp(): int
    {
    }

    /** The resource lent to the task. When none is idle, minus an operation; outcome: the resource lent. */
    public function borrow(int $task): int
    {
    }

    /** False when it is not lent. */
    public function giveBack(int $id, bool $broken): bool
    {
    }

    /** Outcome: null, when there is work. */
    public function workWaits(): int
    {
    }

    /**
     * What is to be done: `create` or `abandon` a request; `check`, `reset` or `close` a resource; `leak`, with a holder as of {@see holders()}.
     *
     * @return list<array{string, int|array{?int, float, ?string, int, ?string, ?string}}>
     */
    public function work(): array
    {
    }

    /** The factory made what was requested. False when nobody wants it any more. */
    public function created(int $request, int $id): bool
    {
    }

    /** The factory made nothing. */
    public function refused(int $request, int $error, string $message): void
    {
    }

    /** A check or reset has ended. */
    public function tended(int $id, bool $healthy): void
    {
    }

    public function resize(int $size, int $minimum_idle): void
    {
    }

    public function suspend(): void
    {
    }

    public function resume(): void
    {
    }

    public function reset(): void
    {
    }

    /** @return array<string, int|float|array<string, int>> */
    public function stats(): array
    {
    }

    /** @return list<array{?int, float, ?string, int, ?string, ?string}> task, seconds, file, line, statement, stack */
    public function holders(): array
    {
    }

    /** Outcome: null, once everything is back. */
    public function close(): int
    {
    }
}
