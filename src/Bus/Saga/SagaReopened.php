<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\MessageType;

/** An event: a saga that had ended takes messages again. Published where {@see Saga::$publishEvents} asks for it. */
#[MessageType('weft.saga.reopened')]
final class SagaReopened
{
    public function __construct(
        public readonly string $saga,
        public readonly string $id,
    ) {}
}
