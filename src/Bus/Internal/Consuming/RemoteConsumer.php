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
}
