<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Documented;

/** A class cannot be a message: one of its properties has no type that JSON could carry both ways. */
final class InvalidMessageClassError extends \Error implements \Weft\Exception
{
    use Documented;

    /**
     * @internal
     *
     * @param string $role what the class is for
     */
    public static function because(string $class, string $reason, string $role = 'a message'): self
    {
        return new self("Class {$class} cannot be {$role}: {$reason}");
    }

    /** @internal */
    public static function property(string $class, string $property, string $reason): self
    {
        return new self("Class {$class} cannot be a message: property \${$property} {$reason}");
    }
}
