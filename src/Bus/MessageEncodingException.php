<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A message holds something its format cannot carry. Names class, path and cause, never a value. */
final class MessageEncodingException extends BusException implements PublicFailure
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
        parent::__construct("Cannot encode {$class}: {$problem}", $previous);
    }

    /** For a {@see Serializer}: `$problem` completes "Cannot encode <class>: …". It must not contain values of the message. */
    public static function because(string $class, string $problem, ?\Throwable $previous = null): self
    {
        return new self($class, '$', $problem, $previous);
    }

    /** @internal */
    public static function reply(string $type, string $problem, string $path = '$'): self
    {
        return new self($type, $path, "as a reply: {$problem}");
    }

    /** @internal */
    public static function at(string $class, string $path, string $problem): self
    {
        return new self($class, $path, "at {$path} {$problem}");
    }
}
