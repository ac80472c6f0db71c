<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\MessageType;

/** Event: a saga has completed or failed. Published with {@see Saga::$publishEvents}. */
#[MessageType('weft.saga.ended')]
final class SagaEnded
{
    public function __construct(
        public readonly string $saga,
        public readonly string $id,
        public readonly SagaStatus $status,
        public readonly string $reason,
    ) {}
}
