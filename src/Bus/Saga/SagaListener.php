<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/** Marks a public method of a {@see Saga} that handles a message for a started saga. */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class SagaListener
{
    /**
     * @param string|null    $by      the property of the message with the saga's id, if {@see Saga} or {@see SagaStart} names it, otherwise
     *                                with a value that {@see SagaContext::associate()} has added under this name
     * @param string|null    $header  or the header that has it
     * @param bool           $command whether the message is a command, of which this is the handler
     * @param UnmatchedPolicy|null $missing for messages whose saga was not started; default: that of {@see Saga}
     */
    public function __construct(
        public readonly ?string $by = null,
        public readonly ?string $header = null,
        public readonly bool $command = false,
        public readonly ?UnmatchedPolicy $missing = null,
    ) {}
}
