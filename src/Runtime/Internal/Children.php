<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Runtime\CancelledException;
use Weft\Runtime\Task;
use Weft\Runtime\TaskState;
use Weft\Runtime\TimeoutException;

/**
 * A scope: ends when its children have ended; the first failure cancels everything in it.
 *
 * @internal
 */
final class Children implements Group, Wait
{
    /** @var array<int, Coroutine> */
    private array $members = [];
    private ?\Throwable $failure = null;
    /** @var list<\Throwable> what failed after the first failure */
    private array $suppressed = [];
    private ?Cancellation $cancellation = null;
    /** The failure of a scope whose timeout has expired. */
    private ?TimeoutException $expired = null;
    private bool $joining = false;
    private bool $closed = false;
    public readonly ?self $outer;
    public readonly int $depth;

    /** Opens a scope in `$owner`, inside the one it has open. */
    public function __construct(private readonly Scheduler $scheduler, public readonly Coroutine $owner)
    {
        $this->outer = $owner->children;
        $this->depth = ($this->outer?->depth ?? 0) + 1;
        $owner->children = $this;
    }

    /**
     * @param callable $main
     * @param array<mixed> $args
     */
    public function start(mixed $main, array $args): Task
    {
        if ($this->closed) {
            throw new \Error("A task cannot be started in a scope that has ended (it belonged to task {$this->owner->label()})");
        }
        $child = $this->scheduler->start($main, $args, $this, $this->owner);
        $this->members[$child->id] = $child;
        if ($this->cancellation !== null) {
            $child->end($this->cancellation);
        }

        return $child;
    }

    public function ended(Coroutine $child): void
    {
        unset($this->members[$child->id]);
        if ($child->outcome === TaskState::Failed && $child->error !== null) {
            $this->fail($child->error, "task {$child->label()} failed");
        }
        if ($this->joining && $this->members === []) {
            $this->joining = false;
            $this->owner->wake();
        }
    }

    /** The scope will throw `$failure`, or suppress it when it is not the first. */
    public function fail(\Throwable $failure, string $what): void
    {
        if ($this->failure !== null) {
            // The body rethrows it when it awaits the failed task.
            if ($this->failure !== $failure) {
                $this->suppressed[] = $failure;
            }
            return;
        }
        $this->failure = $failure;
        $this->cancel($what . ': ' . $failure::class . ': ' . $failure->getMessage(), $failure);
    }

    /** As {@see fail()}, unless no task of the scope is interrupted by it: a result that already exists is not discarded. */
    public function expire(TimeoutException $expired): void
    {
        $this->expired = $expired;
        $this->fail($expired, "$expired->seconds seconds were over");
    }

    /** Cancels the children and, unless it only waits for them, the body. */
    public function cancel(string $reason, ?\Throwable $cause = null): void
    {
        if ($this->closed) {
            return;
        }
        $cancellation = $this->cancellation ??= new Cancellation($reason, $cause);
        $this->cancelMembers($cancellation);
        if (!$this->joining) {
            $this->owner->interrupt($cancellation, $this->depth);
        }
    }

    /**
     * Waits until every child has ended.
     *
     * @param \Throwable|null $thrown by the body
     *
     * @return \Throwable|null what the scope ends with
     */
    public function close(?\Throwable $thrown): ?\Throwable
    {
        if ($thrown !== null && $this->isFailure($thrown)) {
            $this->fail($thrown, "the body of the scope failed in task {$this->owner->label()}");
            $thrown = null;
        } elseif ($thrown !== null) {
            $this->cancelMembers($thrown->cancellation);
        }
        $this->withdraw();
        // PHP destroys the task: no wait can end any more.
        while ($this->members !== [] && !$this->owner->isUnwinding()) {
            $thrown = $this->join() ?? $thrown;
        }
        $this->withdraw();
        $this->closed = true;
        $this->owner->children = $this->outer;
        if ($this->expired !== null && $this->failure === $this->expired && !$this->cancellation?->wasDelivered) {
            $this->failure = \array_shift($this->suppressed);
        }
        if ($this->failure !== null && $this->suppressed !== []) {
            SuppressedFailures::attach($this->failure, $this->suppressed);
        }

        return $this->failure ?? $thrown;
    }

    public function members(): array
    {
        return $this->members;
    }

    public function describe(): string
    {
        $count = \count($this->members);
        $first = \reset($this->members);

        return $count === 1 && $first !== false ? "the end of task {$first->label()}" : "the end of $count tasks of its scope";
    }

    public function abandon(Coroutine $task): void
    {
        $this->joining = false;
    }

    /**
     * A cancellation is not a failure: it comes from this scope or goes on to the one that asked for it.
     *
     * @assert-if-false CancelledException $thrown
     */
    private function isFailure(\Throwable $thrown): bool
    {
        return !($thrown instanceof CancelledException) || !$this->owner->cancelled && !$this->isAsked($thrown->cancellation);
    }

    /** Whether it is the cancellation of this scope or of one around it. */
    public function isAsked(Cancellation $cancellation): bool
    {
        $scope = $this;
        while ($scope !== null) {
            if ($scope->cancellation === $cancellation) {
                return true;
            }
            $scope = $scope->outer;
        }

        return false;
    }

    /** Whether it, or one around it, was cancelled. */
    public function isEnding(): bool
    {
        return $this->cancellation !== null || $this->outer?->isEnding() === true;
    }

    /** Whether it, or one around it, was cancelled by something else than a timeout. */
    public function isCancelled(): bool
    {
        $scope = $this;
        while ($scope !== null) {
            if ($scope->cancellation !== null && !$scope->cancellation->cause instanceof TimeoutException) {
                return true;
            }
            $scope = $scope->outer;
        }

        return false;
    }

    private function join(): ?CancelledException
    {
        $this->joining = true;
        try {
            $this->scheduler->park($this->owner, $this);
        } catch (CancelledException $cancelled) {
            $this->joining = false;
            $this->cancelMembers($cancelled->cancellation);

            return $cancelled;
        }

        return null;
    }

    private function cancelMembers(Cancellation $cancellation): void
    {
        foreach ($this->members as $child) {
            $child->end($cancellation);
        }
    }

    /** Withdraws an interruption that the body has not seen yet: the outcome of the scope replaces it. */
    private function withdraw(): void
    {
        if ($this->cancellation !== null && $this->owner->interrupt === $this->cancellation) {
            $this->owner->interrupt = null;
        }
    }
}
