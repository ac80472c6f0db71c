<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\Transport;

/** A transport that can store delayed messages, for a bus without a database. */
interface DelayingTransport extends Transport
{
    /** @internal null if it must not declare queues for them */
    public function delays(): ?DelayStore;
}
