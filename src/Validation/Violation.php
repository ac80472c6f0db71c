<?php

declare(strict_types=1);

namespace Weft\Validation;

/** A violated constraint of an object. */
final class Violation
{
    /** @param string $path of the property, such as `items[2].price`; empty for the whole object */
    public function __construct(
        public readonly string $path,
        public readonly string $message,
    ) {}

    public function __toString(): string
    {
        return $this->path === '' ? $this->message : "{$this->path}: {$this->message}";
    }
}
