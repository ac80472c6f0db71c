<?php

declare(strict_types=1);

namespace Weft\Internal;

/**
 * Where an exception comes from, for its reader: the innermost line outside of Weft.
 *
 * @internal
 */
final class Origin
{
    public static function isWeft(string $file): bool
    {
        return \str_starts_with($file, self::directory());
    }

    /** With a slash at its end. */
    public static function directory(): string
    {
        return \dirname(__DIR__) . '/';
    }

    /**
     * Makes file and line of the exception those of the innermost call outside of Weft, which PHP has set to where it was made. Its trace is as
     * before. Without such a call nothing changes.
     *
     * @template T of \Throwable
     *
     * @param T $error
     *
     * @return T
     */
    public static function place(\Throwable $error): \Throwable
    {
        $origin = self::of($error);
        if ($origin !== null) {
            $class = $error instanceof \Error ? \Error::class : \Exception::class;
            (new \ReflectionProperty($class, 'file'))->setValue($error, $origin[0]);
            (new \ReflectionProperty($class, 'line'))->setValue($error, $origin[1]);
        }

        return $error;
    }

    /** @return array{string, int}|null file and line of the innermost call outside of Weft, or of the exception itself; null without one */
    public static function of(\Throwable $error): ?array
    {
        foreach ([['file' => $error->getFile(), 'line' => $error->getLine()], ...$error->getTrace()] as $frame) {
            /** @var array{file?: string, line?: int} $frame */
            if (isset($frame['file'], $frame['line']) && !self::isWeft($frame['file'])) {
                return [$frame['file'], $frame['line']];
            }
        }

        return null;
    }
}
