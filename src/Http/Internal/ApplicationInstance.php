<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Native;
use Weft\Runtime\Internal\CallScope;
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

        return CallScope::call($this->enter, $application, $work);
    }

    /** Whether tasks of the work so far still run in the realm, such as those that `detach()` has started. Those of the boot do not count. */
    public function hasTasks(): bool
    {
        return $this->realm->hasTasks();
    }

    /** @param (\Closure(T): mixed)|null $close */
    public function close(?\Closure $close): void
    {
        // Destructors of the application belong to its realm as well.
        $this->realm->run(function (Native\Realm $native) use ($close): void {
            try {
                // Of work that has failed.
                RealmRequest::shutDown($native);
            } finally {
                $this->drop($close);
            }
        });
    }

    /** @param (\Closure(T): mixed)|null $close */
    private function drop(?\Closure $close): void
    {
        try {
            $close === null || $this->application === null || $close($this->application);
        } finally {
            $this->application = null;
        }
    }
}
