<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Psr\Log\LoggerInterface;
use Weft\Bus\Transport;

/** A transport with connections of which a log should know when they break, recover, or are told to wait. */
interface ReportingTransport extends Transport
{
    /**
     * Logs what happens to the connections, until it is cancelled or they are closed. The bus runs it in a task of its own
     * for as long as it consumes. What the logger throws is passed on.
     */
    public function report(LoggerInterface $logger): void;
}
