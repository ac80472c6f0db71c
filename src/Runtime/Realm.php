<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Native;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Exits;
use Weft\Runtime\Internal\Scheduler;

/**
 * One instance of what PHP keeps once per process: superglobals, `header()` and its like, `php://input`, `$_SESSION`, `ini_set()`, time
 * zone, locale, error and exception handlers, shutdown functions, and the static properties named to {@see Realm::isolate()}.
 *
 * A realm begins with the settings, the environment (`$_ENV`, `$_SERVER`) and the error handlers that are in force outside of realms.
 *
 * Code that runs in a realm, and tasks that it starts, see the state of that realm even while tasks of other realms run between their waits.
 * So an application that was written for one request at a time can serve several at once, each in a realm of its own:
 *
 * ```
 * Realm::isolate('Illuminate\Container\Container::instance');
 * $realm = new Realm();
 * $page = $realm->run(function (): string {
 *     date_default_timezone_set('Europe/Vienna');      // of this realm only
 *     return $application->render();
 * });
 * ```
 *
 * Not isolated: global variables, static variables of functions, `putenv()`, `chdir()`, `umask()`, libxml's error mode, autoloaders and
 * constants. `docs/reference/realms.md` has the whole list and what a switch costs.
 */
final class Realm
{
    private readonly Native\Realm $native;
    private ?Coroutine $holder = null;

    /** @throws \Error PHP has no room left for what is kept with each fiber */
    public function __construct()
    {
        if (!\class_exists(Native\Realm::class, false)) {
            throw new \Error('Realms need a place in each fiber, and other extensions of this PHP have taken all of them');
        }
        $this->native = new Native\Realm();
    }

    /**
     * Names static properties that each realm has its own values of; a realm begins with the declared ones. To be called before the
     * first realm is made. The classes are loaded.
     *
     * @param string ...$properties `Class::property`
     *
     * @throws \ValueError there is no such static property
     * @throws \Error a realm exists
     */
    public static function isolate(string ...$properties): void
    {
        Native\Realm::isolate(\array_values($properties), false);
    }

    /**
     * Like {@see isolate()}, but a realm begins with the value that the property has outside of realms when the realm is made: for what the
     * bootstrap of a program sets once.
     *
     * @param string ...$properties `Class::property`
     *
     * @throws \ValueError there is no such static property
     * @throws \Error a realm exists
     */
    public static function inherit(string ...$properties): void
    {
        Native\Realm::isolate(\array_values($properties), true);
    }

    /**
     * Runs `$work` in this realm. One task at a time may hold a realm; tasks that `$work` starts belong to it as well.
     *
     * `exit()` and `die()` inside of a realm do not end the process: `$work`, or the task that calls them, fails with {@see ExitException}.
     *
     * @template T
     *
     * @param \Closure(Native\Realm): T $work
     *
     * @return T
     *
     * @throws ExitException `$work` has called `exit()`
     * @throws \Error outside of tasks, while the task is in a realm, or while another task holds this one
     */
    public function run(\Closure $work): mixed
    {
        return $this->with(null, static fn(mixed $nothing, Native\Realm $native): mixed => $work($native));
    }

    /**
     * As {@see run()}. A server does it several times per request, so nothing is in between that only passes a call on.
     *
     * @internal
     *
     * @template S
     * @template T
     *
     * @param S $subject passed to `$work`: the application that is lent for it; null: none is, and the realm does not count the tasks that it starts
     * @param \Closure(S, Native\Realm): T $work
     *
     * @return T
     *
     * @throws ExitException `$work` has called `exit()`
     * @throws \Error as run()
     */
    public function with(mixed $subject, \Closure $work): mixed
    {
        $task = Scheduler::taskToSuspend() ?? throw new \Error('A realm is entered by a task: call it within Weft\run()');
        if ($this->holder !== null) {
            throw new \Error("The realm is held by task {$this->holder->label()}: a realm serves one task at a time");
        }
        $native = $this->native;
        $native->enter();
        $this->holder = $task;
        $task->realm = $native;
        $task->isRealmWork = $subject !== null;
        $result = null;
        try {
            $hasExited = Native\Realm::untilExit(static function () use ($work, $subject, $native, &$result): void {
                $result = $work($subject, $native);
            });
            if ($hasExited) {
                throw Exits::exception();
            }

            /** @var T $result */
            return $result;
        } finally {
            $task->realm = null;
            $task->isRealmWork = false;
            $this->holder = null;
            Native\Realm::leave();
        }
    }

    /**
     * Whether tasks that the work of an application has started in this realm have not ended.
     *
     * @internal
     */
    public function hasTasks(): bool
    {
        return $this->native->hasTasks();
    }
}
