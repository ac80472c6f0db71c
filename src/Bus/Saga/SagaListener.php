<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/** Marks a public method of a {@see Saga} whose message carries on one that was started. */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class SagaListener
{
    /**
     * @param string|null    $by      the property of the message that holds the saga's id, or a value that
     *                                {@see SagaContext::associate()} has associated with it under this name
     * @param string|null    $header  or the header that does
     * @param bool           $command whether the message is a command, of which this is the one handler
     * @param UnmatchedPolicy|null $missing what becomes of it where its saga was never started; default is that of {@see Saga}
     */
    public function __construct(
        public readonly ?string $by = null,
        public readonly ?string $header = null,
        public readonly bool $command = false,
        public readonly ?UnmatchedPolicy $missing = null,
    ) {}
}
