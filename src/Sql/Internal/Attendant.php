<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Native\SqlDatabase;
use Weft\Pool\Hooks;
use Weft\Pool\Internal\Bell;
use Weft\Pool\Internal\Servant;
use Weft\Pool\Internal\Thrown;
use Weft\Pool\Leak;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Task;
use Weft\Sql\Session;

/**
 * Calls the hooks of a database, and tells of connections that are held for too long. One that has neither has none.
 *
 * @internal
 */
final class Attendant implements Servant
{
    private readonly Bell $bell;
    /** @var array<int, Coroutine> hooks at work, by visit */
    private array $working = [];
    /** @var array<int, Task> hooks of connections that are gone, by task */
    private array $parting = [];

    public function __construct(private readonly SqlDatabase $native, private readonly string $pool, private readonly Hooks $hooks)
    {
        $this->bell = new Bell($native, $this);
        $this->bell->attend();
    }

    /** Waits for an operation of the database and does what its pool needs meanwhile. */
    public function await(int $op): mixed
    {
        return $this->bell->await($op);
    }

    /** The same for a database that may have none. */
    public static function through(?self $attendant, int $op): mixed
    {
        return $attendant === null ? Scheduler::await($op) : $attendant->await($op);
    }

    public function serve(?Scheduler $scheduler = null): void
    {
        foreach ($this->native->work() as $work) {
            if ($work[0] === 'abandon') {
                ($this->working[$work[1]] ?? null)?->cancel('nobody waits for the hook any more');
            } elseif ($scheduler === null) {
                $this->work($work);
            } else {
                // In a task of its own: what the user does may wait, and an error handler may throw.
                $task = $scheduler->orphans->start($this->work(...), [$work]);
                if ($work[0] === 'closed') {
                    $this->parting[$task->id()] = $task;
                } elseif ($work[0] !== 'leak') {
                    $this->working[$work[1]] = $task;
                }
            }
        }
    }

    /** Waits until the hooks of all connections that are gone have ended. */
    public function finish(): void
    {
        $this->serve();
        foreach ($this->parting as $id => $task) {
            unset($this->parting[$id]);
            if ($task !== Scheduler::$current?->running) {
                $task->await();
            }
        }
    }

    /** @param array{string, mixed, 2?: int} $work */
    private function work(array $work): void
    {
        if ($work[0] === 'leak') {
            $leak = Leak::of($this->pool, $work[1]);
            $this->hooks->leaked === null ? \trigger_error((string) $leak, \E_USER_WARNING) : ($this->hooks->leaked)($leak);
        } else {
            $this->call(...$work);
        }
    }

    /** @param int $visit the connection's stay with the hook; 0 when it is gone already */
    private function call(string $moment, int $visit, int $session): void
    {
        $hook = $moment === 'renewed' ? 'created' : $moment;
        try {
            ($this->hooks->{$hook})(new Session($this->native, $visit, $session));
        } catch (\Throwable $thrown) {
            $message = \sprintf('pool "%s": the hook "%s" threw %s: %s', $this->pool, $hook, $thrown::class, $thrown->getMessage());
            $this->native->hookThrew($visit, Thrown::keep($thrown), $message);
            $isHeard = $moment === 'created' || $moment === 'borrowed' || $thrown instanceof CancelledException;
            if (!$isHeard) {
                \trigger_error("$message; the connection is closed", \E_USER_WARNING);
            }

            return;
        } finally {
            unset($this->working[$visit], $this->parting[Scheduler::$current?->running->id ?? 0]);
        }
        $this->native->hookReturned($visit);
    }
}
