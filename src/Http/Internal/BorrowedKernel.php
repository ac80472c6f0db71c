<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Symfony\Component\HttpKernel\HttpKernelInterface;
use Weft\Runtime\Permit;

/**
 * A kernel while a request is in it. One that is neither returned nor discarded is discarded with this object.
 *
 * @internal
 */
final class BorrowedKernel
{
    /** @param \Closure(HttpKernelInterface|\Closure): void $keep */
    public function __construct(
        public readonly HttpKernelInterface|\Closure $kernel,
        private readonly Permit $permit,
        private readonly \Closure $keep,
    ) {
    }

    /** Another request may have it. */
    public function giveBack(): void
    {
        ($this->keep)($this->kernel);
        $this->permit->release();
    }

    /** An exception came out of it: who knows what it has left in there. */
    public function discard(): void
    {
        $this->permit->release();
    }
}
