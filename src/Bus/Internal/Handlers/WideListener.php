<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\Codec\MessageRules;

/**
 * A listener of an interface, a base class or a pattern of types. It becomes a handler of each message class that fits.
 *
 * @internal
 */
final class WideListener
{
    /** Whether any message class was found for it. */
    public bool $hasMatched = false;

    /**
     * @param string                          $name    `Class::method`
     * @param class-string|null               $bound   interface or base class; null for all classes
     * @param string|null                     $pattern of type names; null for all types
     * @param \Closure(MessageClass): Handler $make    the handler for a class
     */
    public function __construct(
        public readonly string $name,
        public readonly ?string $bound,
        private readonly ?string $pattern,
        public readonly \Closure $make,
    ) {}

    public function fits(MessageClass $class): bool
    {
        return ($this->bound === null || \is_subclass_of($class->class, $this->bound) || ($this->pattern !== null && $class->class === $this->bound))
            && ($this->pattern === null || MessageRules::fits($this->pattern, $class->type));
    }

    /** Describes the messages it handles, for exceptions and logs. */
    public function target(): string
    {
        return \implode(' of type ', \array_filter([$this->bound ?? 'messages', $this->pattern === null ? null : "\"{$this->pattern}\""]));
    }
}
