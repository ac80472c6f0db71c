<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The rest of the way to a handler: the next {@see Middleware}, or the handler itself. May be called again. */
final class Next
{
    /**
     * @internal made once for each handler, not for each message
     *
     * @param \Closure(object, Context, ?\Weft\Sql\Transaction): mixed $call
     */
    public function __construct(private readonly \Closure $call) {}

    /** @return mixed what the handler returned */
    public function __invoke(object $message, Context $context): mixed
    {
        return ($this->call)($message, $context, $context->transaction());
    }
}
