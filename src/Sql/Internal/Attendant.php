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
            [$kind, $subject] = $work;
            if ($kind === 'abandon' && \is_int($subject)) {
                ($this->working[$subject] ?? null)?->cancel('the caller of the hook has left');
            } elseif ($scheduler === null) {
                $this->work($kind, $subject, $work[2] ?? 0);
            } else {
                // In a task of its own: what the user does may wait, and an error handler may throw.
                $task = $scheduler->orphans->start($this->work(...), [$kind, $subject, $work[2] ?? 0]);
                if ($kind === 'closed') {
                    $this->parting[$task->id()] = $task;
                } elseif (\is_int($subject)) {
                    $this->working[$subject] = $task;
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

    /**
     * @param int|array{?int, float, ?string, int, ?string, ?string} $subject a visit, or the holder of a leak
     * @param int $session the server's number of it; 0 for a leak
     */
    private function work(string $kind, int|array $subject, int $session): void
    {
        if (\is_array($subject)) {
            $leak = Leak::of($this->pool, $subject);
            $this->hooks->leaked === null ? \trigger_error((string) $leak, \E_USER_WARNING) : ($this->hooks->leaked)($leak);
        } else {
            $this->call($kind, $subject, $session);
        }
    }

    /** @param int $visit the connection's stay with the hook; 0 when it is gone already */
    private function call(string $moment, int $visit, int $session): void
    {
        $hook = $moment === 'renewed' ? 'created' : $moment;
        /** @var \Closure(mixed): void $call the extension asks for hooks that there are */
        $call = $this->hooks->{$hook};
        try {
            $call(new Session($this->native, $visit, $session));
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
