<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\MessageType;

/** Event: a saga has completed, failed or expired. Published with {@see Saga::$publishEvents}. */
#[MessageType('weft.saga.ended')]
final class SagaEnded
{
    /** @param SagaStatus|null $previous active or reopened */
    public function __construct(
        public readonly string $saga,
        public readonly string $id,
        public readonly SagaStatus $status,
        public readonly string $reason,
        public readonly ?SagaStatus $previous = null,
    ) {}
}
