<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Psr\Log\LoggerInterface;
use Weft\Http\BodyWriter;
use Weft\Http\ClientGone;
use Weft\Http\HttpException;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Native\HttpServer;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Cancellation;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Group;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitQueue;
use Weft\Runtime\TaskState;

use function Weft\shield;

/**
 * The requests of a server that are being handled: a task each.
 *
 * @internal
 */
final class Requests implements Group
{
    /** Taken from the extension at a time. */
    private const BATCH = 256;
    /** What the extension says instead of a request, see `HttpServer::next()`. */
    private const GONE = 1;

    /** @var array<int, Coroutine> by the request's id */
    private array $tasks = [];
    private ?int $waiting = null;
    private bool $ended = false;
    private readonly WaitQueue $end;
    private readonly \Closure $work;

    /** @param \Closure(Request): mixed $handler */
    public function __construct(
        private readonly HttpServer $native,
        private readonly \Closure $handler,
        private readonly LoggerInterface $logger,
        private readonly bool $debug,
        private readonly bool $cancelOnDisconnect,
    ) {
        $this->end = new WaitQueue('the end of a server');
        $this->work = $this->handle(...);
    }

    public function serve(Scheduler $scheduler): void
    {
        $this->advance($scheduler);
        try {
            $this->end->wait();
        } catch (CancelledException $cancelled) {
            $this->native->abort();
            $this->cancel($cancelled->getMessage());
            $this->end();
            if ($this->tasks !== []) {
                shield($this->end->wait(...));
            }
            throw $cancelled;
        }
    }

    /** Starts what has arrived and watches for more, on the loop itself: no task has to be woken for it. */
    private function advance(Scheduler $scheduler): void
    {
        do {
            $batch = $this->native->next(self::BATCH);
            if (\is_int($batch)) {
                $this->waiting = $batch;
                $scheduler->watch($batch, function (int $op) use ($scheduler): void {
                    $this->start($scheduler, \Weft\Native\take($op));
                    $this->advance($scheduler);
                });

                return;
            }
            $this->start($scheduler, $batch);
        } while (true);
    }

    /** @param array<int, Request|int> $batch */
    private function start(Scheduler $scheduler, array $batch): void
    {
        foreach ($batch as $id => $request) {
            if ($request instanceof Request) {
                $this->tasks[$id] = $scheduler->start($this->work, [$request, $id], $this, null);
            } elseif (isset($this->tasks[$id])) {
                $this->interrupt($this->tasks[$id], $request);
            }
        }
    }

    private function interrupt(Coroutine $task, int $event): void
    {
        if ($event !== self::GONE) {
            $task->end(new Cancellation('the request is past its deadline'));
        } elseif ($this->cancelOnDisconnect) {
            $task->end(new Cancellation('the client has gone away'));
        }
    }

    /** The life of a request. */
    private function handle(Request $request, int $id): void
    {
        $response = $error = null;
        try {
            $response = ($this->handler)($request);
        } catch (\Throwable $error) {
        }
        $task = $this->tasks[$id];
        if ($task->children !== null) {
            $error = $task->children->close($error);
        }
        if ($error === null && !$response instanceof Response) {
            $error = new \TypeError('The handler returned ' . \get_debug_type($response) . ' instead of a Weft\Http\Response');
        }
        try {
            $this->send($request, $error === null ? $response : $this->answerTo($error, $request, $task));
        } catch (\Throwable $error) {
            $this->report($error, $request);
            if ($request->isOpen()) {
                $request->respond(500, [], '');
            }
        }
    }

    private function send(Request $request, Response $response): void
    {
        $body = $response->body;
        if (\is_string($body)) {
            $request->respond($response->status, $response->headers, $body);

            return;
        }
        $stream = $request->stream($response->status, $response->headers);
        try {
            $writer = new BodyWriter($stream);
            if ($body instanceof \Closure) {
                $body($writer);
            } else {
                foreach ($body as $piece) {
                    $writer->write($piece);
                }
            }
            $writer->end();
        } catch (ClientGone | CancelledException) {
        } finally {
            $stream->abort();
        }
    }

    private function answerTo(\Throwable $error, Request $request, Coroutine $task): Response
    {
        if ($error instanceof HttpException) {
            return ErrorPage::ofException($error);
        }
        if ($error instanceof CancelledException && $task->cancelled) {
            return ErrorPage::unavailable();
        }
        $this->report($error, $request);

        return $this->debug ? ErrorPage::withTrace($error) : ErrorPage::plain(500);
    }

    private function report(\Throwable $error, Request $request): void
    {
        $this->logger->error(
            "{$request->method()} {$request->path()} failed: " . $error::class . ": {$error->getMessage()} at {$error->getFile()}:{$error->getLine()}",
            ['exception' => $error],
        );
    }

    public function ended(Coroutine $child): void
    {
        [$request, $id] = $child->args;
        unset($this->tasks[$id]);
        if ($child->outcome !== TaskState::Completed && $request->isOpen()) {
            $page = ErrorPage::unavailable();
            $request->respond($page->status, $page->headers, '');
        }
        if ($this->ended && $this->tasks === []) {
            $this->end->wakeAll();
        }
    }

    public function members(): array
    {
        return $this->tasks;
    }

    public function cancel(string $reason): void
    {
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
