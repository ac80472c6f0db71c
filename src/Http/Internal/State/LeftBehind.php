<?php

declare(strict_types=1);

namespace Weft\Http\Internal\State;

/**
 * A change that a request has not put back.
 *
 * @internal
 */
final class LeftBehind implements \Stringable
{
    /**
     * @param string $name `Class::$property`, `Class::method() $variable`
     * @param string $kind of its value now
     * @param string $before of the request
     */
    public function __construct(public readonly string $name, public readonly string $kind, public readonly string $before) {}

    public function __toString(): string
    {
        return "$this->name ($this->kind, before: $this->before)";
    }
}
