<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Runs around every handler of a bus, see {@see BusOptions::$middleware}.
 *
 * Middleware runs inside the handler's transaction and timeout, once for each call of each handler, retries included. Messages that
 * it sends through the context belong to the handler's effects; its exceptions are failures of the handler. If it does not call `$next`, the
 * handler is skipped and the message counts as handled. It does not see messages without a handler, nor failed commits.
 */
interface Middleware
{
    /** @return mixed the value that `$next` returned, or another reply; ignored when no reply is expected */
    public function handle(object $message, Context $context, Next $next): mixed;
}
