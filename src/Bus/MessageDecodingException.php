<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A body is not the message its headers announce. Names class, path, expected and found type, never a value. */
final class MessageDecodingException extends BusException
{
    /**
     * @param string $path JSON path of the offending value, such as `$.items[2].price`
     */
    private function __construct(
        public readonly string $class,
        public readonly string $path,
        string $problem,
        ?\Throwable $previous = null,
    ) {
        parent::__construct("Cannot decode {$class}: {$problem}", $previous);
    }

    /** For a {@see Serializer}: `$problem` completes "Cannot decode <class>: …". It must not contain values of the message. */
    public static function because(string $class, string $problem, ?\Throwable $previous = null): self
    {
        return new self($class, '$', $problem, $previous);
    }

    /** @internal */
    public static function malformed(string $class, string $problem): self
    {
        return new self($class, '$', "the body is not JSON: {$problem}");
    }

    /** @internal */
    public static function mismatch(string $class, string $path, string $expected, string $found): self
    {
        return new self($class, $path, "at {$path} expected {$expected}, found {$found}");
    }

    /** @internal */
    public static function noVersion(string $class, string $found): self
    {
        return new self($class, '$', 'the schema version "' . \mb_strcut(\mb_scrub($found, 'UTF-8'), 0, 50) . '" is not a number from 1');
    }

    /** @internal */
    public static function notUpcast(string $class, int $version, string $problem, ?\Throwable $previous = null): self
    {
        return new self($class, '$', "schema version {$version} could not be upcast to the next: {$problem}", $previous);
    }

    /** @internal */
    public static function newerSchema(string $class, int $known, string $found): self
    {
        return new self($class, '$', "schema version {$found} is newer than {$known}, the newest that this program knows");
    }
}
