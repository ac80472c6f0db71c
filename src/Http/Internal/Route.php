<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

/** @internal */
final class Route
{
    /**
     * @param list<string> $methods
     * @param list<\Closure> $middleware
     */
    public function __construct(
        public readonly array $methods,
        public readonly string $path,
        public readonly \Closure $handler,
        public readonly array $middleware,
    ) {
    }
}
