<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\KernelInterface;
use Weft\Pool\Lease;
use Weft\Pool\Pool;

/**
 * A kernel that handles a request. If it is neither returned nor discarded, it is discarded with this object.
 *
 * @internal
 */
final class BorrowedKernel
{
    public readonly HttpKernelInterface|\Closure $kernel;

    /**
     * @param Pool<HttpKernelInterface|\Closure> $pool
     * @param Lease<HttpKernelInterface|\Closure> $lease
     * @param \Closure(HttpKernelInterface|\Closure): bool $isSpent whether it is to be replaced after this request
     */
    public function __construct(private readonly Pool $pool, private readonly Lease $lease, private readonly \Closure $isSpent)
    {
        $this->kernel = $lease->resource();
    }

    /** Resets the kernel and returns it to the pool. */
    public function giveBack(): void
    {
        if (($this->isSpent)($this->kernel)) {
            $this->discard();

            return;
        }
        if ($this->kernel instanceof KernelInterface) {
            // Resets the services now and not before the next request: what they keep may be large, or a connection.
            $this->kernel->boot();
        }
        $this->pool->return($this->lease);
    }

    /** Discards the kernel, which an exception may have left in an inconsistent state. */
    public function discard(): void
    {
        if ($this->lease->isOpen()) {
            $this->pool->discard($this->lease);
        }
    }

    public function __destruct()
    {
        $this->discard();
    }
}
