<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Validates messages before the handler is called; on a handler method, on its class, or on the message class, the first of these in
 * this order. The {@see Validator} passed to {@see Bus::connect()} is used, by default symfony/validator with the constraints of the
 * message class.
 *
 * Types need no validation: a body that does not match the types of its class is never decoded into a message.
 *
 * A message with violations is dead-lettered with {@see InvalidMessageException}, passed to the handler, which finds them in
 * {@see Context::violations()}, or answered with an event and counted as handled.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS)]
final class Validate
{
    /**
     * @param bool                             $passOn whether the handler is called nevertheless
     * @param class-string<InvalidMessageEvent>|null $event  published instead of calling the handler
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
        if ($event !== null && !\is_subclass_of($event, InvalidMessageEvent::class)) {
            throw new \ValueError("The event for invalid messages must implement " . InvalidMessageEvent::class . ", {$event} does not");
        }
    }
}
