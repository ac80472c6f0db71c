<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\MessageType;

/** Event: an ended saga was reopened. Published with {@see Saga::$publishEvents}. */
#[MessageType('weft.saga.reopened')]
final class SagaReopened
{
    /**
     * @param string          $reason   what the caller of {@see \Weft\Bus\Admin::sagas()} has given
     * @param SagaStatus|null $previous completed, failed or expired
     */
    public function __construct(
        public readonly string $saga,
        public readonly string $id,
        public readonly string $reason = '',
        public readonly ?SagaStatus $previous = null,
    ) {}
}
