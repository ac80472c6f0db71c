<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Native;
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

    /** @var T|null null once it is closed */
    private ?object $application;

    /** @param \Closure(): T $boot */
    public function __construct(\Closure $boot)
    {
        $this->realm = new Realm();
        $this->application = $this->realm->run(static function () use ($boot): object {
            $application = $boot();
            // Each request begins with the settings of now, whatever work without a request has set meanwhile.
            Native\Realm::keepSettings();

            return $application;
        });
    }

    /**
     * @template R
     *
     * @param \Closure(T, Native\Realm): R $work
     *
     * @return R
     */
    public function run(\Closure $work): mixed
    {
        $application = $this->application ?? throw new \Error('The instance of the application was dropped');

        return $this->realm->with($application, $work);
    }

    /** @param (\Closure(T): mixed)|null $close */
    public function close(?\Closure $close): void
    {
        // Destructors of the application belong to its realm as well.
        $this->realm->run(function () use ($close): void {
            try {
                $close === null || $this->application === null || $close($this->application);
            } finally {
                $this->application = null;
            }
        });
    }
}
