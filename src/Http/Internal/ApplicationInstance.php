<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Native;
use Weft\Runtime\Internal\CallScope;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Realm;

/**
 * An application that has been booted, and its realm.
 *
 * @template T of object
 *
 * @internal
 */
final class ApplicationInstance
{
    /** Requests that it has served. */
    public int $requests = 0;

    /** Whether it was reset after its last work, or the reset has failed; an instance that is dropped is reset before it is closed otherwise. */
    public bool $isReset = true;

    private readonly Realm $realm;
    private readonly \Closure $enter;

    /** @var T|null null once it is closed */
    private ?object $application;

    /** @param \Closure(): T $boot */
    public function __construct(\Closure $boot)
    {
        $this->realm = new Realm();
        $this->enter = $this->realm->with(...);
        $this->application = $this->realm->run(static function () use ($boot): object {
            $application = $boot();
            // Each request begins with the settings of now, whatever work without a request has set meanwhile.
            Native\Realm::keepSettings();

            return $application;
        });
    }

    /**
     * The tasks that `$work` starts end before it does, so none of them is in the realm when another request is.
     *
     * @template R
     *
     * @param \Closure(T, Native\Realm): R $work
     *
     * @return R
     */
    public function run(\Closure $work): mixed
    {
        $application = $this->application ?? throw new \Error('The instance of the application was dropped');
        $this->isReset = false;

        return CallScope::call($this->enter, $application, $work);
    }

    /** Whether tasks of the work so far still run in the realm, such as those that `detach()` has started. Those of the boot do not count. */
    public function hasTasks(): bool
    {
        return $this->realm->hasTasks();
    }

    /**
     * @param (\Closure(T): mixed)|null $reset releases what work that was interrupted has left open, such as locks and transactions
     * @param (\Closure(T): mixed)|null $close
     * @param \Closure(\Throwable): void $report receives what `$reset` throws
     */
    public function close(?\Closure $reset, ?\Closure $close, \Closure $report): void
    {
        $isInterrupted = !$this->isReset;
        // Destructors of the application belong to its realm as well.
        $this->realm->run(function (Native\Realm $native) use ($reset, $close, $report, $isInterrupted): void {
            try {
                // Of work that has failed.
                RealmRequest::shutDown($native);
            } finally {
                $this->drop($isInterrupted ? $reset : null, $close, $report);
                if ($isInterrupted) {
                    // Objects of an application refer to each other in cycles: only the collector frees the connections that they hold.
                    \gc_collect_cycles();
                }
            }
        });
    }

    /**
     * @param (\Closure(T): mixed)|null $reset
     * @param (\Closure(T): mixed)|null $close
     * @param \Closure(\Throwable): void $report
     */
    private function drop(?\Closure $reset, ?\Closure $close, \Closure $report): void
    {
        $application = $this->application;
        $this->application = null;
        if ($application === null) {
            return;
        }
        try {
            $reset === null || $reset($application);
        } catch (\Throwable $thrown) {
            Scheduler::isCancelledBy($thrown) || $report($thrown);
        }
        $close === null || $close($application);
    }
}
