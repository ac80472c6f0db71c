<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job;
use Weft\Bus\SendOptions;

/** A job of Laravel that came by the bus. */
final class WeftJob extends Job implements JobContract
{
    private bool $isFinished = false;

    private bool $isFiring = false;

    private float $delay = 0.0;

    private ?\Throwable $unstored = null;

    /**
     * @internal made by {@see WeftQueue::pop()} and {@see Handler}
     *
     * @param (\Closure(): bool)|null $isStopped whether its worker is being stopped at once
     */
    public function __construct(
        Container $container,
        string $connection,
        string $queue,
        private readonly QueuedJob $message,
        private readonly Source $source,
        private readonly bool $atOnce = false,
        private readonly ?\Closure $isStopped = null,
    ) {
        $this->container = $container;
        $this->connectionName = $connection;
        $this->queue = $queue;
    }

    public function getJobId(): string
    {
        return $this->source->id();
    }

    public function getRawBody(): string
    {
        return $this->message->payload;
    }

    public function fire(): void
    {
        $this->isFiring = true;
        try {
            parent::fire();
        } finally {
            $this->isFiring = false;
        }
    }

    /**
     * @internal whether its worker is being stopped and nothing was decided about the job: it comes again, with as many attempts as before
     *
     * The exception does not say it: Laravel's connections, and jobs, wrap the one that has ended a wait.
     */
    public function isInterrupted(): bool
    {
        return $this->isStopped !== null && ($this->isStopped)() && !$this->isDeletedOrReleased();
    }

    /**
     * Also where it was interrupted: Laravel's worker releases or fails every other job that throws. A job that goes on in spite of it is asked
     * while it fires, and has not failed.
     */
    public function hasFailed(): bool
    {
        return parent::hasFailed() || (!$this->isFiring && $this->isInterrupted());
    }

    public function attempts(): int
    {
        return $this->message->attempts + 1;
    }

    public function delete(): void
    {
        parent::delete();
        $this->atOnce && $this->finish();
    }

    /** @param \DateTimeInterface|\DateInterval|int $delay seconds until it is tried again */
    public function release($delay = 0): void
    {
        parent::release($delay);
        $this->delay = (float) $this->secondsUntil($delay instanceof \DateInterval || $delay instanceof \DateTimeInterface ? $delay : (int) $delay);
        $this->atOnce && $this->finish();
    }

    /** @internal it has failed, and is not among the failed jobs: it must stay in the queue */
    public function notStored(\Throwable $why): void
    {
        $this->unstored = $why;
    }

    /**
     * @internal acknowledges what was deleted, and sends again what was released
     *
     * @throws \LogicException the job is neither: it stays in the queue
     * @throws \Throwable      the job has failed, and could not be stored among the failed jobs
     */
    public function finish(): void
    {
        if ($this->isFinished) {
            return;
        }
        if ($this->unstored !== null) {
            throw $this->unstored;
        }
        if (!$this->isDeletedOrReleased()) {
            throw new \LogicException("The job {$this->resolveName()} has returned, and was neither deleted nor released");
        }
        $this->isFinished = true;
        if ($this->isDeleted()) {
            $this->source->acknowledge();
        } else {
            $class = $this->message::class;
            $this->source->replace(new $class($this->message->payload, $this->attempts()), $this->delay > 0.0 ? new SendOptions(delay: $this->delay) : null);
        }
    }
}
