<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Messages are validated before the handler is called; on a handler method, on its class, or on the message class, the first
 * of these in this order. By what: {@see Bus::connect()} was given a {@see Validator}, or else symfony/validator, where it is
 * installed, by the constraints of the message class.
 *
 * Types need none of this: a body that does not fit the types of its class never becomes a message.
 *
 * A message with violations is parked with {@see InvalidMessage}, is handed on to the handler, which finds them in
 * {@see Context::violations()}, or is answered with an event and counts as handled.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS)]
final class Validate
{
    /**
     * @param bool                             $passOn whether the handler is called all the same
     * @param class-string<InvalidMessageEvent>|null $event  published instead of calling the handler
     * @param list<string>                     $groups of constraints; empty for those without one
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
