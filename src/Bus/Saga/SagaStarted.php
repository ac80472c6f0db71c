<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\MessageType;

/** Event: a saga was started. Published with {@see Saga::$publishEvents}. */
#[MessageType('weft.saga.started')]
final class SagaStarted
{
    public function __construct(
        public readonly string $saga,
        public readonly string $id,
    ) {}
}
