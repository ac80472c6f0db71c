<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Something that runs around every handler of a bus, see {@see Bus::middleware()}.
 *
 * It runs inside the handler's transaction and time-out, once for each call of each handler, retries included: what it
 * sends through the context belongs to the handler's effects, what it throws is the handler's failure, and without a call of
 * `$next` the handler is skipped and the message counts as handled. Not seen here: messages that no handler is called for,
 * and commits that fail.
 */
interface Middleware
{
    /** @return mixed what `$next` returned, or another reply instead; of no consequence where nobody waits for one */
    public function handle(object $message, Context $context, Next $next): mixed;
}
