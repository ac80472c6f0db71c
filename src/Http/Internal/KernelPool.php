<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Symfony\Component\HttpKernel\HttpKernelInterface;
use Weft\Http\HttpException;
use Weft\Runtime\Semaphore;
use Weft\Runtime\TimeoutException;

use function Weft\timeout;

/**
 * A pool of kernels. Each handles one request at a time; a new one is made when none is idle.
 *
 * @internal
 */
final class KernelPool
{
    private readonly Semaphore $permits;
    /** @var list<HttpKernelInterface|\Closure> the last one returned is borrowed first */
    private array $idle = [];

    /**
     * @param \Closure(): (HttpKernelInterface|\Closure) $factory
     * @param int $size the maximum number of kernels
     * @param float $wait seconds that a request waits for a kernel
     */
    public function __construct(private readonly \Closure $factory, int $size, private readonly float $wait)
    {
        if ($size < 1) {
            throw new \ValueError("A pool of kernels needs at least 1, got \$size $size");
        }
        if (!($wait >= 0.0)) {
            throw new \ValueError("The wait for a kernel must be at least 0 seconds, got \$wait $wait");
        }
        $this->permits = new Semaphore($size);
    }

    /** @throws HttpException 503: no kernel became free in time */
    public function borrow(): BorrowedKernel
    {
        try {
            $permit = $this->permits->tryAcquire() ?? timeout($this->wait, $this->permits->acquire(...));
        } catch (TimeoutException $expired) {
            $message = "503 Service Unavailable: all kernels of the application ({$this->permits->permits}) were busy for $this->wait s";
            throw new HttpException(503, $message, ['retry-after' => '1'], $expired);
        }

        return new BorrowedKernel(\array_pop($this->idle) ?? ($this->factory)(), $permit, function (HttpKernelInterface|\Closure $kernel): void {
            $this->idle[] = $kernel;
        });
    }
}
