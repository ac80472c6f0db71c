<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\Transport\Consumer;

/**
 * A consumer to which messages may be on their way that its broker does not count as waiting any more.
 *
 * @internal
 */
interface RemoteConsumer extends Consumer
{
    /** Returns when everything that the broker has sent so far is here, or at once without a connection. */
    public function catchUp(): void;
}
