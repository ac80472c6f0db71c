<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native;
use Weft\Runtime\Hook;

use function Weft\async;

/**
 * Proves once for each process that a wait of a library suspends its task. Where it does not, Weft runs with blocking calls.
 *
 * @internal
 */
final class HookCheck
{
    /** Microseconds that the wait takes where it blocks. */
    private const BLOCKS_FOR = 100_000;

    private static bool $hasRun = false;
    private static ?string $failure = null;

    /** Why waits of libraries block this process; null if they suspend tasks. */
    public static function failure(): ?string
    {
        if (!self::$hasRun) {
            self::$hasRun = true;
            self::$failure = self::check();
        }

        return self::$failure;
    }

    /**
     * The hooks that are in effect: none where the check fails, with a warning the first time.
     *
     * @param list<Hook> $wanted
     *
     * @return list<Hook>
     */
    public static function usable(array $wanted): array
    {
        if ($wanted === []) {
            return [];
        }
        $isFirst = !self::$hasRun;
        $failure = self::failure();
        if ($failure === null) {
            return $wanted;
        }
        if ($isFirst) {
            Warnings::trigger("Libraries block the process instead of suspending the task: $failure. WEFT_HOOKS=off silences this, see docs/reference/hooks.md");
        }

        return [];
    }

    /** @return list<string> the libraries in which calls of libc are replaced */
    public static function hookedLibraries(): array
    {
        return \array_map(static fn(string $file): string => \explode('.so', $file)[0], \array_keys(Native\hookedFunctions()));
    }

    /** @return list<string> extensions of PHP whose waits block the process */
    public static function blockingExtensions(): array
    {
        return Native\blockingExtensions();
    }

    private static function check(): ?string
    {
        $pair = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        if ($pair === false) {
            return 'the process has no descriptor left for a check';
        }
        [$near, $far] = $pair;
        // Not by stream_select(), which knows no descriptor from 1,024 on.
        \stream_set_timeout($near, 0, self::BLOCKS_FOR);
        $lastId = Scheduler::$lastId;
        $read = Scheduler::run(static function () use ($near, $far): mixed {
            $wait = async(static fn(): string|false => \fread($near, 1));
            async(static fn(): int|false => \fwrite($far, 'x'));

            return $wait->await();
        }, [], 8, null, [Hook::Sockets]);
        // The program's main task is number 1 all the same.
        Scheduler::$lastId = $lastId;
        if ($read === 'x') {
            return null;
        }

        return Native\hookedFunctions() === []
            ? 'this PHP is linked statically, or WEFT_HOOKS_EXCLUDE names it, so no call of libc was replaced'
            : 'a call of fread() in a task has blocked';
    }
}
