<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Requests;

use Weft\Bus\Internal\Wakeup;
use Weft\Bus\Transport\Delivery;

/**
 * A request whose reply has not come yet.
 *
 * @internal
 */
final class PendingRequest
{
    public ?Delivery $reply = null;

    /** Why there will be none. */
    public ?\Throwable $failure = null;

    public readonly Wakeup $settled;

    public function __construct(string $type)
    {
        $this->settled = new Wakeup("the reply to a request of type \"{$type}\"");
    }
}
