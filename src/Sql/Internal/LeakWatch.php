<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Native;
use Weft\Native\SqlDatabase;
use Weft\Pool\Leak;
use Weft\Runtime\Internal\Scheduler;

/**
 * Tells of connections that are held for longer than the leak threshold: in the loop as soon as one is found, outside of
 * `run()` before the next statement. A database without a threshold has none.
 *
 * @internal
 */
final class LeakWatch
{
    /** Finishes when there is a leak. */
    private ?int $bell = null;
    /** @var \WeakReference<Scheduler>|null the loop that listens to the bell */
    private ?\WeakReference $loop = null;

    /** @param (\Closure(Leak): mixed)|null $told by default a warning */
    public function __construct(private readonly SqlDatabase $native, private readonly string $name, private readonly ?\Closure $told)
    {
    }

    public function __destruct()
    {
        $this->leave();
    }

    public function attend(): void
    {
        $scheduler = Scheduler::$current;
        if ($scheduler === null) {
            \array_map($this->tell(...), $this->found());
        } elseif ($this->loop?->get() !== $scheduler) {
            $this->leave();
            $this->loop = \WeakReference::create($scheduler);
            $this->listen($scheduler);
        }
    }

    private function listen(Scheduler $scheduler): void
    {
        $watch = \WeakReference::create($this);
        $this->bell = $this->native->leaked();
        $scheduler->listenTo($this->bell, static function (int $op) use ($watch, $scheduler): void {
            Native\take($op);
            $watch->get()?->hear($scheduler);
        });
    }

    /** Each in a task of its own: a logger may wait, and an error handler may throw. */
    private function hear(Scheduler $scheduler): void
    {
        foreach ($this->found() as $leak) {
            $scheduler->orphans->start($this->tell(...), [$leak]);
        }
        $this->listen($scheduler);
    }

    /** @return list<Leak> */
    private function found(): array
    {
        return \array_map(fn (array $holder): Leak => Leak::of($this->name, $holder), $this->native->leaks());
    }

    private function tell(Leak $leak): void
    {
        $this->told === null ? \trigger_error((string) $leak, \E_USER_WARNING) : ($this->told)($leak);
    }

    private function leave(): void
    {
        if ($this->bell !== null) {
            $this->loop?->get()?->unlisten($this->bell);
            Native\cancel($this->bell);
        }
        $this->bell = $this->loop = null;
    }
}
