<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

use Weft\Bus\Context;
use Weft\Bus\Middleware;
use Weft\Bus\Next;
use Weft\Sql\Transaction;

/**
 * Builds the chain around a handler, once per handler: parts that are not configured cost nothing.
 *
 * @internal
 */
final class Pipeline
{
    /**
     * @param float|null       $timeout     seconds, of handlers that say nothing else
     * @param list<Middleware> $middlewares the first is the outermost
     */
    public function __construct(
        private readonly ?float $timeout,
        private readonly array $middlewares,
    ) {}

    public function around(Handler $handler): Handler
    {
        if ($handler->attributes->batch !== null) {
            return $handler;
        }
        $invoke = $handler->attributes->validation?->around($handler->invoke) ?? $handler->invoke;
        foreach (\array_reverse($this->middlewares) as $middleware) {
            $invoke = self::through($middleware, new Next($invoke));
        }
        $timeout = $handler->attributes->timeout ?? $this->timeout;
        if ($timeout !== null) {
            $invoke = TimeLimit::around($invoke, $timeout);
        }

        return $invoke === $handler->invoke ? $handler : $handler->invokedBy($invoke);
    }

    private static function through(Middleware $middleware, Next $next): \Closure
    {
        return static fn(object $message, Context $context, ?Transaction $transaction): mixed => $middleware->handle($message, $context, $next);
    }
}
