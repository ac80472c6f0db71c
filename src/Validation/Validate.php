<?php

declare(strict_types=1);

namespace Weft\Validation;

/**
 * Validates a message before the handler is called; on a handler, on its class, or on the message class, the first of these in
 * this order. The constraints are those of symfony/validator on the class, or those of a {@see Validator} of your own.
 *
 * Types need no validation: a body that does not match the types of its class is never decoded into an object.
 *
 * A handler of HTTP is not called with an invalid body: the response is 422 with all violations. On the bus, an invalid message is
 * dead-lettered with {@see \Weft\Bus\InvalidMessageException}, passed to the handler, which finds the violations in
 * {@see \Weft\Bus\Context::violations()}, or answered with an event and counted as handled.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_FUNCTION | \Attribute::TARGET_CLASS)]
final class Validate
{
    /**
     * @param bool                             $passOn for the bus: whether the handler is called nevertheless
     * @param class-string|null $event for the bus: a {@see \Weft\Bus\InvalidMessageEvent}, published instead of calling the handler
     * @param list<string>                     $groups of constraints; empty for the default group
     */
    public function __construct(
        public readonly bool $passOn = false,
        public readonly ?string $event = null,
        public readonly array $groups = [],
    ) {
        if ($passOn && $event !== null) {
            throw new \ValueError("An invalid message is either passed to the handler or answered with {$event}, not both");
        }
    }
}
