<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Psr\Log\LoggerInterface;
use Weft\Internal\Preload;
use Weft\Native;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TaskState;

use function Weft\shield;

/**
 * The requests of an HTTP server or the calls of a gRPC server that are in progress, a task each.
 *
 * @internal
 */
final class ServerTasks implements Group, OutputListener, TaskNamer
{
    /** The event of a request whose client has disconnected. */
    public const CLIENT_DISCONNECTED = 1;
    /** Requests taken from the extension at a time. */
    private const BATCH_SIZE = 256;
    /** Bytes of a handler's output that are logged. */
    private const MAX_LOGGED_OUTPUT = 2_000;

    /** @var array<int, Coroutine> by the request's id */
    public array $tasks = [];
    /** Null while nothing is served. */
    private ?Scheduler $scheduler = null;
    private ?int $waiting = null;
    /** Why requests are cancelled at once, null while they are handled. */
    private ?string $cancelReason = null;
    private bool $ended = false;
    private readonly WaitQueue $end;
    private readonly WaitQueue $drained;
    /** @var array<int, string> output of handlers, by the request's id */
    private array $printed = [];
    private readonly \Closure $work;

    public function __construct(
        public readonly ServerTaskHandler $handler,
        private readonly Native\HttpServer|Native\GrpcServer $server,
        public readonly LoggerInterface $logger,
    ) {
        $this->end = new WaitQueue('the end of a server');
        $this->drained = new WaitQueue('requests that are still running');
        $this->work = $handler->handle(...);
        self::preload(...$handler->directories());
    }

    /** To be called before a server listens: clients may use up the descriptors at once. */
    public static function preload(string ...$directories): void
    {
        Preload::directories('Internal', 'Log', 'Log/Internal', 'Runtime', 'Runtime/Internal', ...$directories);
    }

    /**
     * Returns after `end()`, once the last task has ended.
     *
     * @param \Closure(): void $abort called first when the serving task is cancelled
     */
    public function serve(Scheduler $scheduler, \Closure $abort): void
    {
        $this->scheduler = $scheduler;
        $group = \spl_object_id($this);
        $scheduler->groups[$group] = $this;
        ExitHandler::prepare();
        $this->begin($scheduler);
        try {
            $this->end->wait();
        } catch (CancelledException $cancelled) {
            $abort();
            $this->cancel($cancelled->getMessage());
            $this->end();
            if ($this->tasks !== []) {
                shield($this->end->wait(...));
            }
            throw $cancelled;
        } finally {
            unset($scheduler->groups[$group]);
            $this->scheduler = null;
        }
    }

    /** On the loop, because the output buffers of a task are detached when it waits. A task that polls itself is not on the loop. */
    private function begin(Scheduler $scheduler): void
    {
        $this->waiting = Native\sleep(0.0);
        $scheduler->watch($this->waiting, function (int $op) use ($scheduler): void {
            Native\take($op);
            if ($scheduler->running !== null && $scheduler->running->fiber === \Fiber::getCurrent()) {
                $this->begin($scheduler);

                return;
            }
            Output::watch($scheduler->outputLevel, $this->logger);
            $this->waiting = $this->server->arrivals();
            $scheduler->watchAll($this->waiting, $this->arrived(...));
        });
    }

    /** Starts the tasks of new requests. It runs on the loop, so that no task has to be woken. */
    private function arrived(): void
    {
        /** @var Scheduler $scheduler set by serve() */
        $scheduler = $this->scheduler;
        foreach ($this->server->next(self::BATCH_SIZE) as $id => $request) {
            if (\is_object($request)) {
                $task = $this->tasks[$id] = $scheduler->start($this->work, [$request, $id], $this, null);
                if ($request instanceof TraceSource) {
                    $task->trace = $request;
                }
                // One that has waited for its turn until the others were cancelled.
                $this->cancelReason === null || $task->end(new Cancellation($this->cancelReason));
            } elseif (isset($this->tasks[$id])) {
                $this->handler->interrupt($this->tasks[$id], $request);
            }
        }
    }

    public function printed(Coroutine $task, string $text): void
    {
        /** @var int $id */
        [, $id] = $task->args;
        $this->printed[$id] = \substr(($this->printed[$id] ?? '') . $text, 0, self::MAX_LOGGED_OUTPUT);
    }

    public function nameOf(Coroutine $task): string
    {
        /** @var object $request */
        [$request] = $task->args;

        return $this->handler->describe($request);
    }

    public function ended(Coroutine $child): void
    {
        /**
         * @var object $request
         * @var int $id
         */
        [$request, $id] = $child->args;
        unset($this->tasks[$id]);
        // One that is cancelled before it has begun has no fiber: the buffers that are open here are those of the loop or of another task.
        if ($child->fiber !== null && (\ob_get_level() > 0 || $this->printed)) {
            $this->reportOutput($request, $id);
        }
        if ($child->outcome !== TaskState::Completed) {
            $this->handler->abandon($request);
        }
        if ($this->tasks === []) {
            $this->drained->isEmpty() || $this->drained->wakeAll();
            $this->ended && $this->end->wakeAll();
        }
    }

    private function reportOutput(object $request, int $id): void
    {
        // The task has ended, so the log is the only place for the failure.
        $text = ($this->printed[$id] ?? '') . Output::closeLeftOpen(fn(\Throwable $thrown) => $this->logger->error(
            'The callback of an output buffer that {request} has left open has failed: {error}',
            ['request' => $this->handler->describe($request), 'error' => $thrown->getMessage(), 'exception' => $thrown],
        ));
        unset($this->printed[$id]);
        if ($text !== '') {
            $this->logger->warning('Discarded output printed by {request}: {output}', [
                'request' => $this->handler->describe($request),
                'output' => $text,
            ]);
        }
    }

    /**
     * Answers the request of a task that will never continue, because the process ends.
     *
     * @param string|null $cause how the task has ended the process, such as `called exit()`; null if it was another one
     */
    public function failResponse(Coroutine $task, ?string $cause): void
    {
        /**
         * @var object $request
         * @var int $id
         */
        [$request, $id] = $task->args;
        unset($this->tasks[$id]);
        $this->handler->failResponse($request, $cause);
    }

    public function members(): array
    {
        return $this->tasks;
    }

    /** Waits until no task is in progress. */
    public function drain(): void
    {
        if ($this->tasks !== []) {
            $this->drained->wait();
        }
    }

    /** Cancels what is still in progress at the end of the grace period, and whatever arrives later. */
    public function cancelAfterGrace(float $grace): void
    {
        foreach ($this->tasks as $task) {
            $this->logger->warning('{request} did not end within the grace period of {seconds} seconds and is cancelled: {task}', [
                'request' => $this->nameOf($task),
                'seconds' => $grace,
                'task' => (string) TaskReport::of($task),
            ]);
        }
        $this->cancel("the server was stopped and it did not end within $grace seconds");
    }

    private function cancel(string $reason): void
    {
        $this->cancelReason = $reason;
        foreach ($this->tasks as $task) {
            $task->end(new Cancellation($reason));
        }
    }

    /** `serve()` returns once the last task has ended. */
    public function end(): void
    {
        $this->ended = true;
        if ($this->waiting !== null) {
            Scheduler::$current?->unwatch($this->waiting);
        }
        if ($this->tasks === []) {
            $this->end->wakeAll();
        }
    }
}
