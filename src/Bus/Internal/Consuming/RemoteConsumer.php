<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\Transport\Consumer;

/**
 * A consumer whose broker may have sent messages that have not arrived yet, and no longer counts them as ready.
 *
 * @internal
 */
interface RemoteConsumer extends Consumer
{
    /** Returns when everything that the broker has sent has arrived; immediately without a connection. */
    public function catchUp(): void;

    /**
     * Makes stop() give nothing back: close() requeues all deliveries in one step, and until then the consumer stays registered. A quorum queue
     * redelivers in the order of return, so messages that return earlier would overtake the older ones that this process still holds.
     */
    public function keepOrder(): void;
}
