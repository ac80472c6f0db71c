<?php

declare(strict_types=1);

namespace Weft\Native;

/**
 * A pool of PHP's resources, which the extension knows by number. Calls that are documented with an outcome start an operation.
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

    /** Outcome: null. From now on the pool keeps its minimum of idle resources. */
    public function warmUp(): int
    {
    }

    /** The resource lent to the task. When none is idle, minus an operation; outcome: the resource lent. */
    public function borrow(int $task): int
    {
    }

    /** The operation of the borrower that has it now, which no poll returns any more; 0 if it went to none. */
    public function giveBack(int $id, bool $broken): int
    {
    }

    /** Outcome: null, once there is work for {@see work()}. */
    public function workArrived(): int
    {
    }

    /**
     * Work for PHP: `create` or `abandon` a request; `check`, `reset` or `close` a resource; `leak`, with a holder as of {@see holders()}.
     *
     * @return list<array{string, int|array{?int, float, ?string, int, ?string, ?string}}>
     */
    public function work(): array
    {
    }

    /** The factory made a resource. False when the request has timed out. */
    public function created(int $request, int $id): bool
    {
    }

    /** The factory threw; `$error` is the number of the exception. */
    public function failed(int $request, int $error, string $message): void
    {
    }

    /** A check or reset has ended. */
    public function verified(int $id, bool $healthy): void
    {
    }

    public function resize(int $size, int $minimum_idle): void
    {
    }

    public function pause(): void
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

    /** Outcome: null, once all resources are returned. */
    public function close(): int
    {
    }
}
