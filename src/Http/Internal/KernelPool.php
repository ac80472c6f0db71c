<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Psr\Log\LoggerInterface;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Weft\Http\HttpException;
use Weft\Http\Recycling;
use Weft\Pool\Leak;
use Weft\Pool\Leases;
use Weft\Pool\Lifetime;
use Weft\Pool\Pool;
use Weft\Pool\PoolExhaustedException;
use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Pool\Validation;

use function Weft\tasks;

/**
 * A pool of kernels. Each handles one request at a time; a new one is made when none is idle, and the one that was used last is lent
 * first.
 *
 * @internal
 */
final class KernelPool
{
    /** Number of names in a log line. */
    private const HOLDERS_NAMED = 5;

    /** @var Pool<HttpKernelInterface|\Closure> */
    private readonly Pool $kernels;

    /** @var \WeakMap<HttpKernelInterface|\Closure, int> how many requests a kernel has handled */
    private \WeakMap $handled;

    /**
     * @param \Closure(): (HttpKernelInterface|\Closure) $factory
     * @param int $size the maximum number of kernels
     * @param float $wait seconds that a request waits for a kernel
     */
    public function __construct(
        \Closure $factory,
        private readonly int $size,
        private readonly float $wait,
        private readonly Recycling $recycling,
        private readonly LoggerInterface $logger,
    ) {
        if ($size < 1) {
            throw new \ValueError("A pool of kernels needs at least 1, got \$size $size");
        }
        if (!($wait >= 0.0)) {
            throw new \ValueError("The wait for a kernel must be at least 0 seconds, got \$wait $wait");
        }
        $this->handled = new \WeakMap();
        $this->kernels = new Pool($factory, new PoolOptions(
            size: $size,
            timeouts: new Timeouts(borrow: $wait),
            lifetime: new Lifetime(max: $recycling->age),
            validation: new Validation(after: 0.0),
            leases: new Leases(autoReturn: false),
            name: 'kernels',
        ));
    }

    /** @throws HttpException 503: no kernel became free in time */
    public function borrow(): BorrowedKernel
    {
        try {
            return new BorrowedKernel($this->kernels, $this->kernels->borrow(), $this->isSpent(...));
        } catch (PoolExhaustedException $exhausted) {
            // The client is not told who holds them.
            $this->logger->warning('no kernel for a request: all {kernels} are in use after {wait} s, held by {holders}', [
                'kernels' => $this->size,
                'wait' => $this->wait,
                'holders' => \implode('; ', $this->holders()),
            ]);
            $message = "503 Service Unavailable: all kernels of the application ({$this->size}) were busy for $this->wait s";
            throw new HttpException(503, $message, ['retry-after' => '1'], $exhausted);
        }
    }

    /** @return list<string> who holds kernels, the oldest first, and what they wait for */
    private function holders(): array
    {
        $tasks = \array_column(tasks(), null, 'id');

        return \array_map(static function (Leak $holder) use ($tasks): string {
            $task = $tasks[(int) $holder->task] ?? null;
            if ($task === null) {
                return \sprintf('task #%d (%.1f s)', (int) $holder->task, $holder->held);
            }
            $wait = $task->waitsFor === null ? '' : ", waits for $task->waitsFor";

            return \sprintf('%s (%.1f s%s)', $task->name, $holder->held, $wait);
        }, \array_slice($this->kernels->holders(), 0, self::HOLDERS_NAMED));
    }

    /** Whether a kernel that has handled another request is to be replaced. */
    private function isSpent(HttpKernelInterface|\Closure $kernel): bool
    {
        $this->handled[$kernel] = ($this->handled[$kernel] ?? 0) + 1;

        return $this->recycling->requests > 0 && $this->handled[$kernel] >= $this->recycling->requests
            || $this->recycling->memory > 0 && \memory_get_usage() >= $this->recycling->memory;
    }
}
