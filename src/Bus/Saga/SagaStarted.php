<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\MessageType;

/** An event: a saga has started. Published where {@see Saga::$publishEvents} asks for it. */
#[MessageType('weft.saga.started')]
final class SagaStarted
{
    public function __construct(
        public readonly string $saga,
        public readonly string $id,
    ) {}
}
