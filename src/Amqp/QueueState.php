<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** A queue as the broker counted it at one moment. */
final class QueueState
{
    /** @param int $messages ready for delivery; those delivered and not yet settled are not counted */
    public function __construct(
        public readonly int $messages,
        public readonly int $consumers,
    ) {}
}
