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
     * The line of user code that waits, and the function of Weft in which it waits.
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
     * @param array<array-key, mixed> $trace as `debug_backtrace()` returns it
     *
     * @return array{?string, string}
     */
    private static function firstOutside(array $trace): array
    {
        $library = \dirname(__DIR__, 2) . '/';
        /** @var array<string, mixed> $frame */
        foreach ($trace as $frame) {
            if (isset($frame['file']) && !\str_starts_with($frame['file'], $library)) {
                $call = ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'] . '()';

                return [\str_starts_with($call, 'Weft\\') ? $call : null, "$frame[file]:$frame[line]"];
            }
        }

        return [null, 'a line of Weft itself'];
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
