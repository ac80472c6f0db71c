<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Symfony\Component\HttpKernel\HttpKernelInterface;
use Weft\Runtime\Permit;

/**
 * A kernel that handles a request. If it is neither returned nor discarded, it is discarded with this object.
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

    /** Returns the kernel to the pool. */
    public function giveBack(): void
    {
        ($this->keep)($this->kernel);
        $this->permit->release();
    }

    /** Discards the kernel after an exception, which may have left it in an inconsistent state. */
    public function discard(): void
    {
        $this->permit->release();
    }
}
