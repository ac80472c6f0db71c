<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Requests;

use Weft\Bus\Internal\Wakeup;
use Weft\Bus\Transport\Delivery;

/**
 * A request that is waiting for its reply.
 *
 * @internal
 */
final class PendingRequest
{
    public ?Delivery $reply = null;

    /** Why there will be no reply. */
    public ?\Throwable $failure = null;

    public readonly Wakeup $settled;

    public function __construct(string $type)
    {
        $this->settled = new Wakeup("the reply to a request of type \"{$type}\"");
    }
}
