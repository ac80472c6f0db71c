<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\MessageType;

/** Event: an ended saga was reopened. Published with {@see Saga::$publishEvents}. */
#[MessageType('weft.saga.reopened')]
final class SagaReopened
{
    public function __construct(
        public readonly string $saga,
        public readonly string $id,
    ) {}
}
