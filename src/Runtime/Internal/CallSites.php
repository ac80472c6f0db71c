<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Finds names and source locations on demand, so that running tasks record nothing.
 *
 * @internal
 */
final class CallSites
{
    public static function nameOf(callable $main): string
    {
        $function = self::reflect($main);
        $class = $function instanceof \ReflectionMethod ? $function->class . '::' : '';

        return \str_contains($function->name, '{closure') ? 'closure' : $class . $function->name;
    }

    public static function originOf(callable $main): string
    {
        $function = self::reflect($main);
        $file = $function->getFileName();

        return $file === false ? 'internal code' : \basename($file) . ':' . (int) $function->getStartLine();
    }

    /**
     * The line of user code that waits, and the function of Weft or of a library in which it waits.
     *
     * @return array{?string, string} call and `file:line`
     */
    public static function waitOf(Coroutine $task): array
    {
        if ($task->fiber === null || !$task->fiber->isSuspended()) {
            return [null, 'an unknown line'];
        }

        return self::firstOutside((new \ReflectionFiber($task->fiber))->getTrace(\DEBUG_BACKTRACE_IGNORE_ARGS));
    }

    /** @return array{?string, string} the same for the code that is running */
    public static function here(): array
    {
        return self::firstOutside(\debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS));
    }

    /**
     * The innermost call outside of Weft, and the innermost line outside of Weft and of the packages in `vendor/`.
     *
     * @param array<array-key, mixed> $trace as `debug_backtrace()` returns it
     *
     * @return array{?string, string}
     */
    private static function firstOutside(array $trace): array
    {
        $library = \dirname(__DIR__, 2) . '/';
        $call = $innermost = null;
        /** @var array<string, mixed> $frame */
        foreach ($trace as $frame) {
            if (!isset($frame['file']) || \str_starts_with($frame['file'], $library)) {
                continue;
            }
            $place = "$frame[file]:$frame[line]";
            $call ??= (isset($frame['class']) ? "$frame[class]::" : '') . $frame['function'] . '()';
            $innermost ??= $place;
            if (!\str_contains($frame['file'], '/vendor/')) {
                return [$call, $place];
            }
        }

        return [$call, $innermost ?? 'a line of Weft itself'];
    }

    /** @param mixed $main a callable */
    private static function reflect(mixed $main): \ReflectionFunctionAbstract
    {
        return match (true) {
            \is_array($main) => new \ReflectionMethod($main[0], $main[1]),
            \is_object($main) && !$main instanceof \Closure => new \ReflectionMethod($main, '__invoke'),
            \is_string($main) && \str_contains($main, '::') => new \ReflectionMethod(...\explode('::', $main, 2)),
            default => new \ReflectionFunction($main),
        };
    }
}
