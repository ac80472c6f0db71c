<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Psr\Log\LoggerInterface;
use Weft\Http\HttpException;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Native\HttpServer;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Cancellation;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Group;
use Weft\Runtime\Internal\HearsOutput;
use Weft\Runtime\Internal\NamesTasks;
use Weft\Runtime\Internal\Output;
use Weft\Runtime\Internal\Report;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitQueue;
use Weft\Runtime\TaskState;

use function Weft\shield;

/**
 * The requests of a server that are being handled: a task each.
 *
 * @internal
 */
final class Requests implements Group, HearsOutput, NamesTasks
{
    /** Taken from the extension at a time. */
    private const BATCH = 256;
    /** What the extension says instead of a request, see `HttpServer::next()`. */
    private const GONE = 1;
    /** Bytes that are kept of what a handler prints. */
    private const OUTPUT = 2_000;

    /** @var array<int, Coroutine> by the request's id */
    private array $tasks = [];
    private ?int $waiting = null;
    private bool $ended = false;
    private readonly WaitQueue $end;
    /** @var array<int, string> what handlers have printed, by the request's id */
    private array $printed = [];
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
        $group = \spl_object_id($this);
        $scheduler->groups[$group] = $this;
        LastRites::of($this->native, $this, $this->logger);
        // On the loop itself: what a task does to the output is undone when it waits.
        $this->waiting = \Weft\Native\sleep(0.0);
        $scheduler->watch($this->waiting, function (int $op) use ($scheduler): void {
            \Weft\Native\take($op);
            Output::watch();
            $this->advance($scheduler);
        });
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
        } finally {
            unset($scheduler->groups[$group]);
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
            $this->expire($task);
        } elseif ($this->cancelOnDisconnect) {
            $task->end(new Cancellation('the client has gone away'));
        }
    }

    /** The client hears of it now, whatever the handler makes of its cancellation. */
    private function expire(Coroutine $task): void
    {
        $request = $task->args[0];
        if ($request->isOpen()) {
            $this->logger->warning('{request} is past its deadline and is cancelled: {task}', ['request' => self::describe($request), 'task' => (string) Report::of($task)]);
            $page = ErrorPage::unavailable();
            $request->respond($page->status, $page->headers, $page->body);
        }
        $task->end(new Cancellation('the request is past its deadline'));
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
        if (\ob_get_level() > 1 || $this->printed !== []) {
            $this->reportOutput($request, $id);
        }
    }

    private function reportOutput(Request $request, int $id): void
    {
        $text = ($this->printed[$id] ?? '') . Output::closeLeftOpen();
        unset($this->printed[$id]);
        if ($text !== '') {
            $this->logger->warning('{request} printed something, which is no part of an answer: {output}', [
                'request' => self::describe($request),
                'output' => $text,
            ]);
        }
    }

    public function printed(Coroutine $task, string $text): void
    {
        [, $id] = $task->args;
        $this->printed[$id] = \substr(($this->printed[$id] ?? '') . $text, 0, self::OUTPUT);
    }

    public function nameOf(Coroutine $task): string
    {
        return self::describe($task->args[0]);
    }

    /** `GET /people/{id} from 127.0.0.1:40000` */
    public static function describe(Request $request): string
    {
        $address = $request->clientAddress();
        $from = match (true) {
            $address === null => 'a Unix socket',
            \str_contains($address, ':') => "[$address]:{$request->clientPort()}",
            default => "$address:{$request->clientPort()}",
        };

        return "{$request->method()} " . ($request->route ?? $request->path()) . " from $from";
    }

    private function send(Request $request, Response $response): void
    {
        if ($response->status === 101) {
            return;
        }
        $body = $response->body;
        if (\is_string($body)) {
            $request->respond($response->status, $response->headers, $body);

            return;
        }
        if ($body instanceof Body) {
            $body->send($request, $response);

            return;
        }
        StreamedBody::write($request->stream($response->status, $response->headers), $body);
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
            ['exception' => $error, 'request' => self::describe($request)],
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

    /** Its task will never go on. */
    public function forget(Coroutine $task): void
    {
        unset($this->tasks[$task->args[1]]);
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
