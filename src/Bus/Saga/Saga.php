<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/**
 * Marks a class as a saga (process manager): a process with a memory that messages start, carry on and end.
 *
 * Its properties are the memory. They are coded as a message's are and kept in the handlers' database, one row for each
 * saga; what a method changes commits together with what it sends and with the note that the message was handled. The
 * class is registered by its name, `$bus->handlers(Checkout::class)`, and is made without arguments: what its methods need,
 * they ask for by parameter, as handlers do, a {@see SagaContext} among it.
 *
 * Two messages for one saga at the same time cannot overwrite each other: the later commit fails with {@see SagaConflict} and
 * its message is handled again, on the new state.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Saga
{
    /**
     * @param string|null $name     1 to 100 bytes under which the rows are found; default is the class name
     * @param string|null $by       the property of the messages that says which saga they are for, where a method does not
     *                              say otherwise
     * @param string|null $header   or the header that does; `correlation-id` is the same for everything that one message led to
     * @param float|null  $expires  seconds after its start from which a saga takes no messages; null never
     * @param UnmatchedPolicy   $missing  what becomes of a message whose saga was never started
     * @param UnmatchedPolicy   $ended    and of one whose saga is completed or failed
     * @param UnmatchedPolicy   $expired  and of one whose saga has expired
     * @param bool        $publishEvents whether {@see SagaStarted}, {@see SagaEnded} and {@see SagaReopened} are published
     * @param int         $version  of the properties, counts up from 1; a row of a newer version is refused
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
            throw new \ValueError("The expiry of a saga must be above 0 seconds, or null for never; got {$expires}");
        }
        if ($version < 1) {
            throw new \ValueError("The version of a saga must be at least 1, got {$version}");
        }
        if ($ended === UnmatchedPolicy::Retry || $expired === UnmatchedPolicy::Retry) {
            throw new \ValueError('Messages for a saga that has ended or expired cannot be retried: choose DeadLetter or Ignore');
        }
    }
}
