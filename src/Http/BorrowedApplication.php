<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\ApplicationInstance;
use Weft\Http\Internal\SlowClients;
use Weft\Native;
use Weft\Pool\Lease;
use Weft\Pool\Pool;

/**
 * An instance of an {@see ApplicationPool} that belongs to one request. If it is neither released nor discarded, it is discarded with this
 * object.
 *
 * @template T of object
 */
final class BorrowedApplication
{
    /** @var ApplicationInstance<T> */
    private readonly ApplicationInstance $instance;

    /**
     * @internal made by the pool
     *
     * @param ApplicationPool<T> $applications
     * @param Pool<ApplicationInstance<T>> $pool
     * @param Lease<ApplicationInstance<T>> $lease
     */
    public function __construct(private readonly ApplicationPool $applications, private readonly Pool $pool, private readonly Lease $lease, private readonly string $work)
    {
        $this->instance = $lease->resource();
    }

    /**
     * Runs `$work` with the instance, in its realm, until the tasks that it starts have ended. May be called several times, one after the other.
     *
     * @template R
     *
     * @param \Closure(T, Native\Realm): R $work
     *
     * @return R
     *
     * @throws \Weft\Pool\LeaseReturnedError after `release()` or `discard()`
     */
    public function run(\Closure $work): mixed
    {
        return $this->lease->resource()->run($work);
    }

    /**
     * Resets the instance and returns it to the pool, or drops it where it is spent or the reset has failed, which is logged.
     *
     * @throws \Weft\Runtime\CancelledException the task was cancelled during the reset; the instance is discarded
     */
    public function release(): void
    {
        $this->end(null);
    }

    /**
     * @internal as {@see release()}, after `$terminate` has run in the realm
     *
     * @param (\Closure(T): mixed)|null $terminate
     * @param bool $hasEnded whether {@see Internal\RealmRequest} has ended the request
     */
    public function end(?\Closure $terminate, bool $hasEnded = false): void
    {
        try {
            $replaced = $this->applications->recover($this->instance, $this->work, $terminate, $hasEnded);
        } catch (\Throwable $thrown) {
            $this->discard();
            throw $thrown;
        }
        $replaced === null ? $this->pool->return($this->lease) : $this->drop($replaced);
    }

    /** @internal */
    public function slowClients(): SlowClients
    {
        return $this->applications->slowClients;
    }

    /** Drops the instance, whose state is unknown after an exception; the pool boots another when it needs one. */
    public function discard(): void
    {
        $this->drop('failed');
    }

    /** @internal drops the instance after `exit()` */
    public function exited(): void
    {
        $this->drop('exited');
    }

    public function isOpen(): bool
    {
        return $this->lease->isOpen();
    }

    public function __destruct()
    {
        $this->discard();
    }

    private function drop(string $reason): void
    {
        if ($this->lease->isOpen()) {
            $this->applications->count($reason);
            $this->pool->discard($this->lease);
        }
    }
}
