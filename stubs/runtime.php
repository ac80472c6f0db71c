<?php

declare(strict_types=1);

namespace Weft\Native;

/** A hash of these files, as the extension was built with them, see {@see \Weft\Version::INTERFACE_HASH}. */
function interfaceHash(): string
{
}

/**
 * Runs native work and returns the operations that have finished since the last call, in the order of finishing.
 *
 * Only the scheduler calls it: a finished id is announced once.
 *
 * @param float|null $timeout seconds to wait for the first one; 0.0 makes one pass, null waits as long as it takes
 * @param int|null $tasks that have not ended, for the metrics
 * @param int|null $fibers of the pool, for the metrics
 *
 * @return list<int>
 *
 * @throws \Weft\Runtime\ForkedProcessError
 */
function poll(?float $timeout = null, ?int $tasks = null, ?int $fibers = null): mixed
{
}

/**
 * The outcome of a finished operation, once.
 *
 * @throws \Weft\Exception the failure it ended in
 * @throws \Error it is still running, was cancelled or was taken before
 */
function take(int $op): mixed
{
}

/** Drops an operation, running or finished. It is not announced any more. Unknown ids are ignored. */
function cancel(int $op): void
{
}

/** How many operations have been started and have neither been announced by `poll()` nor been cancelled. */
function running(): int
{
}

/** Whether the running fiber is one that the garbage collector calls destructors in. PHP 8.4 and later have such, where a fiber runs the collector. */
function isCollecting(): bool
{
}

/**
 * Whether the running code is in a fiber that it may suspend now: not where PHP blocks switches, nor while PHP destroys the fiber, nor in the callback
 * of an output buffer that others print into.
 */
function maySuspend(): bool
{
}

/**
 * Outcome: null, after `$delay` seconds; negative ones count as 0.
 */
function sleep(float $delay): int
{
}

/**
 * Outcome: `$number`, when the signal comes. Its handler is in place from the next `poll()` until the operation ends.
 *
 * Fails with an \Error where the signal does not exist or cannot be caught.
 */
function signal(int $number): int
{
}

/**
 * Panics, in an operation or in the call itself, to prove that PHP gets an \Error. Debug builds only.
 */
function panic(bool $in_operation): int
{
}

/**
 * From now on the output buffers that a fiber opens above the first `$base` are its own: suspended, it takes them along. A
 * negative number switches that off.
 */
function separateOutput(int $base): void
{
}

/**
 * Opens an output buffer that calls `$receive` for each piece of output. What it throws is thrown by the code that has printed, and all buffers stay as they
 * are: PHP disables a callback of `ob_start()` that throws, and those of the buffers below with it.
 *
 * @param \Closure(string): string $receive returns what goes to the buffer below
 *
 * @return bool false where PHP refuses the buffer
 */
function receiveOutput(\Closure $receive): bool
{
}
