<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A message holds something JSON cannot carry. Names class, path and cause, never a value. */
final class MessageEncodingException extends BusException implements PublicFailure
{
    /**
     * @param string $path JSON path of the offending value, such as `$.items[2].price`
     */
    private function __construct(
        public readonly string $class,
        public readonly string $path,
        string $problem,
    ) {
        parent::__construct("Cannot encode {$class}: {$problem}");
    }

    /** @internal */
    public static function reply(string $type, string $problem): self
    {
        return new self($type, '$', "as a reply: {$problem}");
    }

    /** @internal */
    public static function at(string $class, string $path, string $problem): self
    {
        return new self($class, $path, "at {$path} {$problem}");
    }
}
