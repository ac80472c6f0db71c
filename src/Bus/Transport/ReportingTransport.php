<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Psr\Log\LoggerInterface;
use Weft\Bus\Transport;

/** A transport that reports when its connections break, recover or are blocked. */
interface ReportingTransport extends Transport
{
    /**
     * Logs connection events until it is cancelled or the connections are closed. The bus runs it in its own task while it consumes.
     * Exceptions of the logger propagate.
     */
    public function report(LoggerInterface $logger): void;
}
