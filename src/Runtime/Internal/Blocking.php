<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native;

/**
 * Waits outside of tasks: the whole process blocks.
 *
 * @internal
 */
final class Blocking
{
    /** Seconds that clean-up code may wait, in all, while PHP destroys suspended tasks. */
    private const SHUTDOWN_TIMEOUT = 5.0;

    /** The other code in which PHP cannot suspend a fiber; for SOAP see crates/ext/calls/soap.c. */
    private const OTHER_REFUSALS = 'The same holds for a handler of pcntl_signal(), and for what SoapClient calls where its variables are in an order that Weft does not know.';

    /** @var array<int, true> finished operations that no code has waited for yet */
    public static array $finished = [];

    private static ?float $shutdownEnds = null;

    public static function await(int $op): mixed
    {
        while (!isset(self::$finished[$op])) {
            self::poll(null, $op);
        }
        unset(self::$finished[$op]);

        return Native\take($op);
    }

    /** Waits for the first of several. */
    public static function awaitFirst(int ...$ops): int
    {
        while (true) {
            foreach ($ops as $op) {
                if (isset(self::$finished[$op])) {
                    return $op;
                }
            }
            self::poll(null, $ops[0]);
        }
    }

    /** Waits for an operation of a `finally` block or a destructor that runs because the process ends. */
    public static function awaitAtShutdown(int $op): mixed
    {
        self::$shutdownEnds ??= \hrtime(true) / 1e9 + self::SHUTDOWN_TIMEOUT;
        while (!isset(self::$finished[$op])) {
            $left = self::$shutdownEnds - \hrtime(true) / 1e9;
            if ($left <= 0.0) {
                Native\cancel($op);
                throw new \Error('Clean-up of a task that was still suspended at the end of the process took more than ' . self::SHUTDOWN_TIMEOUT . ' seconds');
            }
            self::poll($left, $op);
        }
        unset(self::$finished[$op]);

        return Native\take($op);
    }

    /** Advances the operations that can make progress without waiting, such as a connection with data to send. */
    public static function flush(): void
    {
        self::remember(Native\poll(0.0));
    }

    /** The error for code that cannot suspend; null where the fiber or the loop has ended. */
    public static function refusal(\FiberError $refused): ?\Error
    {
        if (!\str_starts_with($refused->getMessage(), 'Cannot switch fibers')) {
            return null;
        }

        if (self::isCompilation($refused)) {
            return new \Error('This code cannot wait for another task: it is an error handler that PHP calls while it compiles a file.', previous: $refused);
        }
        if (\str_ends_with($refused->getMessage(), 'in the callback of an output buffer')) {
            return new \Error(
                'This code cannot wait: it is called by an output buffer that other tasks print into, that its task has left open, or that gets the output of var_dump(), '
                    . 'highlight_string() or the compilation of a file. Wait before the output, or open the buffer in a task of a server, where each task has its own.',
                previous: $refused,
            );
        }

        return new \Error(
            \PHP_VERSION_ID < 80400
                ? 'This code cannot wait: before PHP 8.4 a task cannot be suspended inside a destructor. Close the object before its last reference goes away. '
                    . self::OTHER_REFUSALS
                : 'This code cannot wait: PHP cannot suspend a task here. ' . self::OTHER_REFUSALS,
            previous: $refused,
        );
    }

    /** Whether the code is an error handler that the compiler has called. */
    public static function isCompilation(\FiberError $refused): bool
    {
        return \str_ends_with($refused->getMessage(), 'during a compilation');
    }

    /** The error for a destructor in a realm that the garbage collector calls and that waits for another task. */
    public static function refusalToCollector(): \Error
    {
        return new \Error('This code cannot wait for another task: it is a destructor in a realm that the garbage collector calls. Close the object before it becomes garbage.');
    }

    private static function poll(?float $timeout, int $op): void
    {
        $running = Native\running();
        $finished = Native\poll($running === 0 ? 0.0 : $timeout);
        if ($running === 0 && $finished === []) {
            throw new \Error("Operation $op is not running: it was cancelled or taken before");
        }
        // Code outside of tasks, such as a destructor called by the loop, must not consume the results that tasks wait for.
        Scheduler::$current === null ? self::remember($finished) : Scheduler::$current->finished($finished);
    }

    /** @param list<int> $ops finished operations that no code waits for yet */
    public static function remember(array $ops): void
    {
        foreach ($ops as $op) {
            self::$finished[$op] = true;
        }
    }
}
