<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Symfony\Component\Runtime\ResolverInterface;

/**
 * Tells how the application is made, so that it can be made again: a front controller returns a function.
 *
 * @internal
 */
final class RememberingResolver implements ResolverInterface
{
    /** @param \Closure(\Closure(): ?object): void $remember */
    public function __construct(private readonly ResolverInterface $resolver, private readonly \Closure $remember)
    {
    }

    /** @return array{callable, array<mixed>} */
    public function resolve(): array
    {
        [$make, $arguments] = $this->resolver->resolve();
        ($this->remember)(static function () use ($make, $arguments): ?object {
            /** @var object|null */
            return $make(...$arguments);
        });

        return [$make, $arguments];
    }
}
