<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/**
 * Marks a public method of a {@see Saga} whose message starts one.
 *
 * Exactly one saga is started under one id, however many messages come. A saga may have several such methods.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class SagaStart
{
    /**
     * @param string|null $by       the property of the message that becomes the saga's id; default is that of {@see Saga}
     * @param string|null $header   or the header
     * @param bool        $command  whether the message is a command, of which this is the one handler; otherwise it is an event
     * @param bool        $joinExisting    whether a message for a saga that is there already is handled by it, as a listener's
     * @param UnmatchedPolicy   $existing what becomes of it otherwise
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
