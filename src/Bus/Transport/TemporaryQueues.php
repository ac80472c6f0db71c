<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Bus\Transport;

/** A transport with temporary queues for replies, which are deleted after their consumer. */
interface TemporaryQueues extends Transport
{
    /** Creates a queue without a dead-letter queue. */
    public function openTemporary(string $queue): void;

    public function dropTemporary(string $queue): void;
}
