<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/**
 * Marks a public method of a {@see Saga} whose message starts a saga.
 *
 * Exactly one saga is started per id, however many messages arrive. A saga may have several such methods.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class SagaStart
{
    /**
     * @param string|null $by       the property of the message with the id for the saga; default: that of {@see Saga}
     * @param string|null $header   or the header
     * @param bool        $command  whether the message is a command, of which this is the handler; otherwise it is an event
     * @param bool        $joinExisting whether the message is handled by a saga that exists already, as a listener's would be
     * @param UnmatchedPolicy   $existing otherwise, the policy for a message whose saga exists already
     */
    public function __construct(
        public readonly ?string $by = null,
        public readonly ?string $header = null,
        public readonly bool $command = false,
        public readonly bool $joinExisting = false,
        public readonly UnmatchedPolicy $existing = UnmatchedPolicy::DeadLetter,
    ) {
        if ($existing === UnmatchedPolicy::Retry) {
            throw new \ValueError('A message that would start an existing saga cannot be retried: choose DeadLetter or Ignore');
        }
    }
}
