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
     * The subject of a task's wait, and the line of user code that waits.
     *
     * The subject is what {@see WaitsFor} says of an object, or of a function that user code has not called itself, or else the function of Weft or
     * of a library that user code has called. Where no user code is on the stack, it is the subject of the function of Weft that waits.
     *
     * @return array{string, string} subject and `file:line`
     */
    public static function waitOf(Coroutine $task): array
    {
        if ($task->fiber === null || !$task->fiber->isSuspended()) {
            return ['an unknown operation', 'an unknown line'];
        }
        $trace = (new \ReflectionFiber($task->fiber))->getTrace(\DEBUG_BACKTRACE_IGNORE_ARGS | \DEBUG_BACKTRACE_PROVIDE_OBJECT);
        [$call, $place] = self::firstOutside($trace);
        [$subject, $waitsFor] = self::subjectIn($trace);
        // User code does not know a function that PHP calls: `echo` and `ob_flush()` call the one that sends a streamed response.
        $isOfInterface = $call === null || \str_starts_with($call, 'Weft\\') && !\str_contains($call, '\\Internal\\');
        $isReason = $waitsFor !== null && ($waitsFor->isNamed() || !$isOfInterface);

        return [$isReason ? $subject : $call ?? $subject, $place];
    }

    /** @return array{?string, string} the innermost call of user code that is running, and its line */
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
        $call = $innermost = null;
        /** @var array<string, mixed> $frame */
        foreach ($trace as $frame) {
            if (!isset($frame['file']) || self::isOfLibrary($frame['file'])) {
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

    /**
     * The subject of the innermost function of Weft that has one, or the innermost function.
     *
     * @param array<array-key, mixed> $trace
     *
     * @return array{string, ?WaitsFor} the subject, and where it is from
     */
    private static function subjectIn(array $trace): array
    {
        $innermost = null;
        /** @var array<string, mixed> $frame */
        foreach ($trace as $frame) {
            $class = $frame['class'] ?? null;
            if ($class === \Fiber::class || $class === Scheduler::class) {
                continue;
            }
            $waitsFor = self::attributeOf($class, $frame['function']);
            if ($waitsFor !== null) {
                return [$waitsFor->describe($frame['object'] ?? null), $waitsFor];
            }
            $innermost ??= ($class === null ? '' : "$class::") . $frame['function'] . '()';
            if (isset($frame['file']) && !self::isOfLibrary($frame['file'])) {
                break;
            }
        }

        return [$innermost ?? 'an operation of the extension', null];
    }

    private static function attributeOf(?string $class, string $function): ?WaitsFor
    {
        $reflection = match (true) {
            $class !== null => \method_exists($class, $function) ? new \ReflectionMethod($class, $function) : null,
            default => \function_exists($function) ? new \ReflectionFunction($function) : null,
        };

        return ($reflection?->getAttributes(WaitsFor::class)[0] ?? null)?->newInstance();
    }

    private static function isOfLibrary(string $file): bool
    {
        return \str_starts_with($file, \dirname(__DIR__, 2) . '/');
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
