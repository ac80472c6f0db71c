<?php

declare(strict_types=1);

namespace Weft\Log\Internal;

use Weft\Internal\ErrorDocumentation;
use Weft\Internal\Origin;
use Weft\Internal\Printable;

/**
 * Formats an exception and its previous exceptions for the log. Stacks show the frames of the application without arguments,
 * which may be secrets, and count the frames of Weft. A stack with frames of Weft only is shown whole. Exceptions of Weft are followed by
 * where to read about them.
 *
 * @internal
 */
final class ExceptionReport
{
    /** Frames of one stack. */
    public const MAX_FRAMES = 50;
    /** Exceptions of one chain, which may be circular. */
    public const MAX_CHAIN = 10;
    private const FRAME_BYTES = 500;

    /** `LogicException: no such order at /srv/app/Orders.php:88` */
    public static function summary(\Throwable $error): string
    {
        return \get_debug_type($error) . ': ' . Printable::cut($error->getMessage(), Message::VALUE_BYTES) . " at {$error->getFile()}:{$error->getLine()}";
    }

    /** The report as lines. `$said` is the log message above it, which is not repeated. */
    public static function text(\Throwable $error, string $said): string
    {
        $lines = [];
        $last = null;
        foreach (self::chain($error) as $one) {
            $summary = self::summary($one);
            if ($last !== null) {
                $lines[] = "Previous: $summary";
            } elseif (!\str_contains($said, $summary)) {
                $lines[] = $summary;
            }
            if ($last === null || !self::repeats($one, $last)) {
                $lines = [...$lines, ...self::stack($one)];
            }
            $last = $one;
            $documentation = ErrorDocumentation::of($one);
            $documentation === null || $lines[] = "Help: {$documentation->location()}";
        }

        return \implode("\n", $lines);
    }

    /** Whether the exception above repeats the message of its previous one, and both come from the same line outside of Weft: the stack is the same. */
    private static function repeats(\Throwable $previous, \Throwable $above): bool
    {
        return $previous->getMessage() !== '' && \str_contains($above->getMessage(), $previous->getMessage()) && Origin::of($previous) === Origin::of($above);
    }

    /** @return array<string, mixed> the report for JSON */
    public static function fields(\Throwable $error): array
    {
        $previous = null;
        foreach (\array_reverse(self::chain($error)) as $one) {
            $fields = [
                'class' => \get_debug_type($one),
                'message' => Printable::cut($one->getMessage(), Message::VALUE_BYTES),
                'at' => "{$one->getFile()}:{$one->getLine()}",
                'stack' => self::stack($one),
            ];
            $documentation = ErrorDocumentation::of($one);
            $documentation === null || $fields['help'] = $documentation->location();
            $previous = $previous === null ? $fields : $fields + ['previous' => $previous];
        }

        /** @var array<string, mixed> $previous a chain has at least one exception */
        return $previous;
    }

    /** @return non-empty-list<\Throwable> the outermost first, each once */
    private static function chain(\Throwable $error): array
    {
        $chain = [];
        for ($one = $error; $one !== null && \count($chain) < self::MAX_CHAIN && !\in_array($one, $chain, true); $one = $one->getPrevious()) {
            $chain[] = $one;
        }

        return $chain;
    }

    /** @return list<string> */
    private static function stack(\Throwable $error): array
    {
        /** @var list<array<string, mixed>> $frames */
        $frames = $error->getTrace();
        $application = \array_filter($frames, static fn(array $frame): bool => !self::isOwn($frame));
        $folded = $application === [] ? 0 : \count($frames) - \count($application);
        $shown = $application === [] ? $frames : $application;
        $lines = [];
        foreach (\array_slice($shown, 0, self::MAX_FRAMES, true) as $at => $frame) {
            $lines[] = self::frame($at, $frame, $folded > 0);
        }
        if (\count($shown) > self::MAX_FRAMES) {
            $lines[] = '… ' . self::count(\count($shown) - self::MAX_FRAMES, 'more frame');
        }
        if ($folded > 0) {
            $lines[] = '… ' . self::count($folded, 'frame') . ' of Weft';
        }

        return $lines;
    }

    /**
     * A frame has the location of a call, unless PHP made it, and the called function: it belongs to Weft if both do.
     *
     * @param array<string, mixed> $frame
     */
    private static function isOwn(array $frame): bool
    {
        return (!isset($frame['file']) || Origin::isWeft($frame['file'])) && (isset($frame['class']) ? self::isOwnClass($frame['class']) : self::isOwnFunction($frame['function']));
    }

    /** @param class-string $class */
    private static function isOwnClass(string $class): bool
    {
        // Functions of PHP and of the extension have no file.
        $file = (new \ReflectionClass($class))->getFileName();

        return $file === false || Origin::isWeft($file);
    }

    private static function isOwnFunction(string $function): bool
    {
        if (\function_exists($function)) {
            $file = (new \ReflectionFunction($function))->getFileName();

            return $file === false || Origin::isWeft($file);
        }

        // A closure outside of classes: `Weft\{closure}`, since PHP 8.4 `{closure:Weft\run():12}` or `{closure:/file.php:12}`.
        return \str_starts_with($function, 'Weft\\') || \str_starts_with($function, '{closure:Weft\\') || \str_starts_with($function, '{closure:' . Origin::directory());
    }

    /** @param array<string, mixed> $frame */
    private static function frame(int $at, array $frame, bool $folds): string
    {
        $place = match (true) {
            !isset($frame['file']) => '[internal function]',
            $folds && Origin::isWeft($frame['file']) => '[Weft]',
            default => "{$frame['file']}({$frame['line']})",
        };
        $call = ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'] . '()';

        return Printable::cut("#$at $place: " . \str_replace("\0", '@', $call), self::FRAME_BYTES);
    }

    private static function count(int $count, string $noun): string
    {
        return "$count $noun" . ($count === 1 ? '' : 's');
    }
}
