<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;

/**
 * A variable with a separate value in each task, such as a trace id. A new task inherits the current values of the task that owns its scope.
 *
 * Outside `run()` there is one value for the process, which tasks do not see.
 *
 * @template T
 */
final class Local
{
    private static int $lastKey = 0;
    /** @var array<int, mixed> */
    private static array $outside = [];
    /** @var \WeakMap<Coroutine, true>|null tasks that have set a value without inheriting one; those that inherit are found through them */
    private ?\WeakMap $setters = null;

    /** @internal among the variables of a task; below 0 of one that detached tasks do not inherit */
    public readonly int $key;

    /**
     * @param T    $default    the value of tasks that have set none
     * @param bool $inDetached whether a task that {@see \Weft\detach()} starts inherits the value; false for what ends with the scope, which such
     *                         a task may outlive
     */
    public function __construct(private readonly mixed $default = null, bool $inDetached = true)
    {
        self::$lastKey++;
        $this->key = $inDetached ? self::$lastKey : -self::$lastKey;
    }

    /** @return T */
    public function value(): mixed
    {
        $values = Scheduler::context()?->locals ?? self::$outside;

        return \array_key_exists($this->key, $values) ? $values[$this->key] : $this->default;
    }

    /** @param T $value for this task and the tasks it starts from now on */
    public function set(mixed $value): void
    {
        $task = Scheduler::task();
        if ($task === null) {
            self::$outside[$this->key] = $value;
        } else {
            if (!\array_key_exists($this->key, $task->locals)) {
                $this->setters ??= new \WeakMap();
                $this->setters[$task] = true;
            }
            $task->locals[$this->key] = $value;
        }
    }

    /**
     * Runs `$work` with `$value`, then restores the previous value.
     *
     * @template R
     *
     * @param T $value
     * @param callable(): R $work
     *
     * @return R
     */
    public function with(mixed $value, callable $work): mixed
    {
        $before = $this->value();
        $this->set($value);
        try {
            return $work();
        } finally {
            $this->set($before);
        }
    }

    public function __destruct()
    {
        unset(self::$outside[$this->key]);
        if ($this->setters !== null) {
            foreach ($this->setters as $task => $_) {
                $this->removeFrom($task);
            }
            foreach (Scheduler::$current?->detached->members ?? [] as $task) {
                $this->removeFrom($task);
            }
        }
    }

    /** Removes the value from a task and from those that have inherited it: a task that goes on for long would keep it. */
    private function removeFrom(Coroutine $task): void
    {
        if (!\array_key_exists($this->key, $task->locals)) {
            return;
        }
        unset($task->locals[$this->key]);
        for ($scope = $task->children; $scope !== null; $scope = $scope->outer) {
            foreach ($scope->members() as $child) {
                $this->removeFrom($child);
            }
        }
    }
}
