<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The state of a connection at one moment. */
final class Status
{
    /** @param string $reason why it is so; empty while connected */
    public function __construct(
        public readonly State $state,
        public readonly string $reason,
    ) {}
}
