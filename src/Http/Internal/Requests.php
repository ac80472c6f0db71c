<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Psr\Log\LoggerInterface;
use Weft\Http\HttpException;
use Weft\Http\Internal\Handlers\ReturnValue;
use Weft\Http\Internal\Handlers\UnusableResultException;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\Router;
use Weft\Log\Internal\ExceptionReport;
use Weft\Native;
use Weft\Native\HttpServer;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\ServerTaskHandler;
use Weft\Runtime\Internal\ServerTasks;
use Weft\Runtime\Internal\Cancellation;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\TaskReport;
use Weft\Runtime\Internal\Scheduler;

/**
 * The requests of a server.
 *
 * @implements ServerTaskHandler<Request>
 *
 * @internal
 */
final class Requests implements ServerTaskHandler
{
    private readonly ServerTasks $serverTasks;
    private readonly RefusalLog $refusals;
    private readonly ?WebSocketWatch $webSocketWatch;
    /** @var array<int, true> requests with a response whose task still runs, by id */
    private array $answered = [];

    /**
     * @param \Closure(Request): mixed $handler
     * @param Router|null $router that has made it, for errors
     */
    public function __construct(
        private readonly HttpServer $native,
        private readonly \Closure $handler,
        private readonly LoggerInterface $logger,
        private readonly bool $debug,
        private readonly bool $cancelOnDisconnect,
        private readonly ?Router $router,
    ) {
        $this->serverTasks = new ServerTasks($this, $native, $logger);
        $this->refusals = new RefusalLog($native, $logger);
        $this->webSocketWatch = $cancelOnDisconnect ? new WebSocketWatch() : null;
    }

    /** @param bool $isCarrier its connections carry another protocol only, so requests need no fibers */
    public function serve(Scheduler $scheduler, bool $isCarrier): void
    {
        $claim = $isCarrier ? null : $scheduler->fiberShares->claim($this->native->handlers(), $this->native->fit(...));
        $this->refusals->watch($scheduler);
        \class_exists(Native\Realm::class, false) && Native\Realm::refuseHeadersOutside();
        try {
            $this->serverTasks->serve($scheduler, $this->native->abort(...));
        } finally {
            $this->refusals->end();
            $claim === null || $scheduler->fiberShares->release($claim);
        }
    }

    public function interrupt(Coroutine $task, int $event): void
    {
        if ($event !== ServerTasks::CLIENT_DISCONNECTED) {
            $this->expire($task);
        } elseif ($this->cancelOnDisconnect && !isset($this->answered[$task->args[1]])) {
            $task->end(new Cancellation('the client has disconnected'));
        }
    }

    /** Responds immediately, regardless of how the handler reacts to its cancellation. */
    private function expire(Coroutine $task): void
    {
        $request = $task->args[0];
        if ($request->isOpen()) {
            $this->logger->warning('{request} is past its deadline and is cancelled: {task}', ['request' => $this->describe($request), 'task' => (string) TaskReport::of($task)]);
            $page = ErrorPage::unavailable();
            $request->respond($page->status, $page->headers, $page->body);
        }
        $task->end(new Cancellation('the request is past its deadline'));
    }

    public function handle(object $request, int $id): void
    {
        $response = $error = null;
        $request->webSocketWatch = $this->webSocketWatch;
        try {
            $response = ($this->handler)($request);
        } catch (\Throwable $error) {
        }
        $task = $this->serverTasks->tasks[$id];
        if ($task->children !== null) {
            $error = $task->children->close($error);
        }
        if ($error === null && !$response instanceof Response) {
            try {
                $response = ReturnValue::ofUndeclared($response);
            } catch (UnusableResultException $unusable) {
                $error = $unusable->error($this->router?->routeOf($request)?->plan);
            } catch (\Throwable $error) {
            }
        }
        if ($error === null && $request->afterResponse === [] && \is_string($response->body) && $response->status !== 101) {
            try {
                $request->finish($response->status, $response->headers, $response->body);

                return;
            } catch (\Throwable) {
                // The response is invalid: the same failure is reported below.
            }
        }
        try {
            $this->answer($request, $task, $response, $error);
            $request->afterResponse === [] || $this->finish($request, $id, $task);
        } finally {
            $request->handled();
        }
    }

    private function answer(Request $request, Coroutine $task, mixed $response, ?\Throwable $error): void
    {
        try {
            $this->send($request, $error === null ? $response : $this->answerTo($error, $request, $task));
        } catch (\Throwable $error) {
            $this->report($error, $request);
            if ($request->isOpen()) {
                $page = ErrorPage::internalError($request);
                $request->respond($page->status, $page->headers, \is_string($page->body) ? $page->body : '');
            }
        }
    }

    /**
     * Runs the functions that the application has deferred until after the response. A client that disconnects with its response does not
     * cancel them; the deadline does.
     */
    private function finish(Request $request, int $id, Coroutine $task): void
    {
        $this->answered[$id] = true;
        if ($request->isQueued()) {
            try {
                // Lets the connection send the response first. A timer would take a millisecond, and the instance of the application waits as well.
                $task->scheduler->yield($task);
            } catch (CancelledException) {
            }
        }
        $works = $request->afterResponse;
        $request->afterResponse = [];
        foreach ($works as $work) {
            $error = null;
            try {
                $work();
            } catch (\Throwable $error) {
            }
            if ($task->children !== null) {
                $error = $task->children->close($error);
            }
            if ($error !== null) {
                $this->report($error, $request, '{method} {path} failed after its response: {error}');
            }
        }
        unset($this->answered[$id]);
    }

    public function describe(object $request): string
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
        if ($response->status === 101 && !$request->isOpen()) {
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
            return ErrorPage::ofException($error, $request);
        }
        if ($error instanceof CancelledException && $task->cancelled) {
            return ErrorPage::unavailable();
        }
        $this->report($error, $request);

        return $this->debug ? ErrorPage::withTrace($error, $request) : ErrorPage::internalError($request);
    }

    private function report(\Throwable $error, Request $request, string $message = '{method} {path} failed: {error}'): void
    {
        $this->logger->error($message, [
            'method' => $request->method(),
            'path' => $request->path(),
            'error' => ExceptionReport::summary($error),
            'exception' => $error,
            'request' => $this->describe($request),
        ]);
    }

    public function abandon(object $request): void
    {
        $request->handled();
        if ($request->isOpen()) {
            $page = ErrorPage::unavailable();
            $request->respond($page->status, $page->headers, '');
        }
    }

    public function failResponse(object $request, ?string $cause): void
    {
        if ($request->isOpen()) {
            $page = match (true) {
                $cause === null => ErrorPage::unavailable(),
                $this->debug => ErrorPage::withReason("{$this->describe($request)} $cause", $request),
                default => ErrorPage::internalError($request),
            };
            $request->respond($page->status, $page->headers, \is_string($page->body) ? $page->body : '');
        }
    }

    public function directories(): array
    {
        return ['Http', 'Http/Internal', 'Http/Internal/Handlers', 'Http/Internal/Routing', 'Http/Internal/OpenApi', 'Internal/Codec', 'Validation', 'Validation/Internal'];
    }

    public function refuseMore(): void
    {
        $this->native->stop();
    }

    public function connections(): int
    {
        return $this->native->connections();
    }

    /** Waits until no task runs any more. */
    public function drain(): void
    {
        $this->serverTasks->drain();
    }

    public function cancelAfterGrace(float $grace): void
    {
        $this->serverTasks->cancelAfterGrace($grace);
    }

    /** `serve()` returns once the last task has ended. */
    public function end(): void
    {
        $this->serverTasks->end();
    }
}
