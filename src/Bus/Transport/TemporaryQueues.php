<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Bus\Transport;

/** A transport that makes queues for replies and gets rid of them when whoever reads them is gone. */
interface TemporaryQueues extends Transport
{
    /** Makes a queue without dead letters, which can be put into and consumed. */
    public function openTemporary(string $queue): void;

    public function dropTemporary(string $queue): void;
}
