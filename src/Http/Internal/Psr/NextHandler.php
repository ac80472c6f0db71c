<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Psr;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * What comes after a PSR-15 middleware.
 *
 * @internal
 */
final class NextHandler implements RequestHandlerInterface
{
    /** @param \Closure(ServerRequestInterface): ResponseInterface $handle */
    public function __construct(private readonly \Closure $handle)
    {
    }

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        return ($this->handle)($request);
    }
}
