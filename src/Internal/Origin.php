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
        foreach ($error->getTrace() as $frame) {
            if (isset($frame['file'], $frame['line']) && !self::isWeft($frame['file'])) {
                $class = $error instanceof \Error ? \Error::class : \Exception::class;
                (new \ReflectionProperty($class, 'file'))->setValue($error, $frame['file']);
                (new \ReflectionProperty($class, 'line'))->setValue($error, $frame['line']);
                break;
            }
        }

        return $error;
    }
}
