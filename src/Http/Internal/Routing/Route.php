<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

use Weft\Http\Internal\Handlers\HandlerPlan;
use Weft\Http\Router;
use Weft\Http\WebSocketOptions;

/**
 * A registered route.
 *
 * @internal
 */
final class Route
{
    public ?string $name = null;

    /**
     * @param list<string> $methods in upper case
     * @param list<\Closure> $middleware of this route alone
     * @param Router $owner the router or group it was added to, whose middleware is around it
     * @param bool $isDocumented whether it is part of the OpenAPI document
     * @param WebSocketOptions|null $webSocket null for a route that speaks HTTP
     */
    public function __construct(
        public readonly array $methods,
        public PathPattern $pattern,
        public readonly HandlerPlan $plan,
        public readonly array $middleware,
        public readonly Router $owner,
        public readonly bool $isDocumented = true,
        public readonly ?WebSocketOptions $webSocket = null,
    ) {
    }

    /** Whether requests of the method have a body (RFC 9110, section 9.3). */
    public static function hasBody(string $method): bool
    {
        return $method !== 'GET' && $method !== 'HEAD';
    }

    /** Not a copy: its router may still name it. */
    public function moveBelow(string $prefix): self
    {
        $this->pattern = PathPattern::of($prefix . $this->pattern->path);

        return $this;
    }

    public function describe(string $method): string
    {
        return "$method {$this->pattern->path} ({$this->plan->source})";
    }
}
