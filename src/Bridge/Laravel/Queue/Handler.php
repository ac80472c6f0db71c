<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Foundation\Application;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Queue\Failed\FailedJobProviderInterface;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;
use Weft\Bridge\Laravel\Internal\Served;
use Weft\Bus\Context;
use Weft\Bus\CrashedTooOftenException;
use Weft\Http\ApplicationPool;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\TimeoutException;

use function Weft\scope;
use function Weft\timeout;

/**
 * Runs the jobs of a queue, each in an application of its own, by Laravel's worker: attempts, back-off, failed jobs and events are as with
 * `queue:work`.
 */
abstract class Handler
{
    /** How often a job may end its worker, whatever its `tries` say: as {@see \Weft\Bus\InboxOptions::$maxCrashes} for other messages. */
    private const MAX_REDELIVERIES = 5;

    /** @var \WeakMap<object, true> dispatchers of applications whose failed jobs are stored */
    private readonly \WeakMap $listening;

    private ?CachedRedeliveries $redeliveries = null;

    /**
     * @internal made by the command
     *
     * @param ApplicationPool<Served>|null $applications null: it only declares the queue
     */
    final public function __construct(
        private readonly ?ApplicationPool $applications,
        private readonly string $connection,
        private readonly string $queue,
        private readonly ?WorkerOptions $options = null,
    ) {
        $this->listening = new \WeakMap();
    }

    protected function process(QueuedJob $message, Context $context): void
    {
        $applications = $this->applications ?? throw new \LogicException('This handler was made to declare its queue');
        $applications->with(fn(Served $instance): mixed => $instance->run(function (Application $application) use ($message, $context): void {
            $isStopped = Scheduler::watchCancellation();
            $work = function (int $redeliveries) use ($application, $message, $context, $isStopped): void {
                // The first time, the job may only have waited in a worker that was stopped: that is no attempt.
                $counted = new ($message::class)($message->payload, $message->attempts + \max(0, $redeliveries - 1));
                $this->run($application, new WeftJob($application, $this->connection, $this->queue, $counted, new Handled($context), isStopped: $isStopped), $redeliveries);
            };
            if ($context->redelivered() && $context->redeliveries() === 0) {
                // The bus has no database to count them.
                ($this->redeliveries ??= new CachedRedeliveries())->count($application, $context->messageId(), $work);
            } else {
                $work($context->redeliveries());
            }
        }));
    }

    private function run(Application $application, WeftJob $job, int $redeliveries): void
    {
        $this->storeFailures($application);
        if ($redeliveries >= self::MAX_REDELIVERIES) {
            $job->fail(new CrashedTooOftenException("The job {$job->resolveName()} was begun $redeliveries times by workers that ended before it did"));
            $job->finish();

            return;
        }
        $options = $this->options ?? new WorkerOptions();
        /** @var Worker $worker */
        $worker = $application->make('queue.worker');
        $worker->setCache($application->make('cache')->driver());
        $seconds = (float) ($job->timeout() ?? $options->timeout);
        $work = static fn() => $worker->process($job->getConnectionName(), $job, $options);
        try {
            // A failure of a task that the job starts cancels this scope, and nothing around it.
            $seconds > 0.0 ? timeout($seconds, $work) : scope($work);
        } catch (\Throwable $thrown) {
            if ($job->isInterrupted()) {
                throw $thrown;
            }
            if ($thrown instanceof TimeoutException && $job->shouldFailOnTimeout() && !$job->hasFailed()) {
                $job->fail($thrown);
            }
            // Laravel has released the job or marked it as failed.
            $application->make(ExceptionHandler::class)->report($thrown);
        }
        $job->finish();
    }

    /** As `queue:work` does it. */
    private function storeFailures(Application $application): void
    {
        $events = $application->make('events');
        if (isset($this->listening[$events])) {
            return;
        }
        $this->listening[$events] = true;
        $events->listen(JobFailed::class, static function (JobFailed $event): void {
            $job = $event->job;
            $failer = $job->getContainer()->make('queue.failer');
            try {
                $failer->log($event->connectionName, $job->getQueue(), $job->getRawBody(), $event->exception);
            } catch (\Throwable $failure) {
                if (self::isStored($failer, $job->uuid())) {
                    // By a worker that has ended before it acknowledged the job.
                    return;
                }
                $job instanceof WeftJob && $job->notStored($failure);
                throw $failure;
            }
        });
    }

    private static function isStored(FailedJobProviderInterface $failer, ?string $uuid): bool
    {
        try {
            return $uuid !== null && $failer->find($uuid) !== null;
        } catch (\Throwable) {
            // One that knows jobs by a number.
            return false;
        }
    }
}
