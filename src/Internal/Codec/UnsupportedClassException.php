<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Objects of a class cannot be encoded as JSON and decoded again. Packages turn it into an error that says what they need the class for.
 *
 * @internal
 */
final class UnsupportedClassException extends \Exception
{
    /** @param string $reason completes "Class X cannot be …:" */
    public function __construct(public readonly string $class, public readonly string $reason, private readonly bool $isMissing = false)
    {
        parent::__construct("{$class} cannot be encoded: {$reason}");
    }

    public static function missing(string $class): self
    {
        return new self($class, 'the class does not exist', true);
    }

    public static function property(string $class, string $property, string $reason): self
    {
        return new self($class, "property \${$property} {$reason}");
    }

    /**
     * Completes "contains …", for a class inside of another.
     *
     * @param 'encoded'|'decoded' $failed
     */
    public function nested(string $failed): string
    {
        return $this->class . ($this->isMissing ? ', a class that does not exist' : ", which cannot be {$failed}: {$this->reason}");
    }
}
