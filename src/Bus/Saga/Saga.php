<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Internal\Number;

/**
 * Marks a class as a saga (process manager): a long-running process with state that messages start, continue and end.
 *
 * The properties of the class are the state. They are encoded like a message and stored in the handlers' database, one row per saga.
 * Changes of the state, the messages that a method sends and the inbox row commit together. Register the class by name,
 * `$bus->handlers(Checkout::class)`; it is instantiated without arguments. Its methods receive services as parameters, like handlers,
 * and a {@see SagaContext}.
 *
 * Two messages for the same saga at the same time cannot overwrite each other: the later commit fails with {@see SagaConflictException} and its
 * message is handled again, on the new state.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Saga
{
    /**
     * @param string|null $name     1 to 100 bytes that identify the rows of the class; default: the class name
     * @param string|null $by       the property of the messages that holds the saga's id; a method may override it
     * @param string|null $header   or the header that does; `correlation-id` is shared by everything that one message led to
     * @param float|null  $expires  seconds after the start when the saga expires, above 0; null for never
     * @param UnmatchedPolicy   $missing  for messages whose saga was not started
     * @param UnmatchedPolicy   $ended    for messages whose saga has completed or failed
     * @param UnmatchedPolicy   $expired  for messages whose saga has expired
     * @param bool        $publishEvents whether {@see SagaStarted}, {@see SagaEnded} and {@see SagaReopened} are published
     * @param int         $version  version of the properties, at least 1; rows of a newer version are refused
     */
    public function __construct(
        public readonly ?string $name = null,
        public readonly ?string $by = null,
        public readonly ?string $header = null,
        public readonly ?float $expires = 30 * 86_400.0,
        public readonly UnmatchedPolicy $missing = UnmatchedPolicy::DeadLetter,
        public readonly UnmatchedPolicy $ended = UnmatchedPolicy::Ignore,
        public readonly UnmatchedPolicy $expired = UnmatchedPolicy::DeadLetter,
        public readonly bool $publishEvents = false,
        public readonly int $version = 1,
    ) {
        if ($name === '' || \strlen($name ?? '') > 100) {
            throw new \ValueError("The name of a saga must have 1 to 100 bytes, \"{$name}\" has " . \strlen($name ?? ''));
        }
        if ($expires !== null && !($expires > 0.0 && $expires < 1e10)) {
            throw new \ValueError('The expiry of a saga must be above 0 and below 10,000,000,000 seconds, or null for never; got ' . Number::text($expires));
        }
        if ($version < 1) {
            throw new \ValueError("The version of a saga must be at least 1, got {$version}");
        }
        if ($ended === UnmatchedPolicy::Retry || $expired === UnmatchedPolicy::Retry) {
            throw new \ValueError('Messages for a saga that has ended or expired cannot be retried: choose DeadLetter or Ignore');
        }
    }
}
