<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A body is not the message its headers announce. Names class, path, expected and found type, never a value. */
final class MessageDecodingFailed extends BusException
{
    /**
     * @param string $path JSON path of the offending value, such as `$.items[2].price`
     */
    private function __construct(
        public readonly string $class,
        public readonly string $path,
        string $problem,
    ) {
        parent::__construct("Cannot decode {$class}: {$problem}");
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
    public static function newerSchema(string $class, int $known, string $found): self
    {
        return new self($class, '$', "schema version {$found} is newer than {$known}, the newest known here");
    }
}
