<?php

declare(strict_types=1);

namespace Weft;

use Psr\Log\LoggerInterface;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Grpc\Server as GrpcServer;
use Weft\Grpc\ServerOptions as GrpcOptions;
use Weft\Http\Limits;
use Weft\Http\Router;
use Weft\Http\Server;
use Weft\Http\Tls;
use Weft\Http\TrustedProxies;
use Weft\Internal\App\BackgroundTask;
use Weft\Internal\App\HealthChecks;
use Weft\Internal\Generators;
use Weft\Internal\Inspection;
use Weft\Internal\MetricsAddress;
use Weft\Internal\Number;
use Weft\Log\Internal\ExceptionReport;
use Weft\Log\Internal\GuardedLogger;
use Weft\Native\MetricsEndpoint;
use Weft\Runtime\Internal\ExitHandler;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\Signals;
use Weft\Runtime\Task;
use Weft\Workers\Worker;

/**
 * An application: one process that serves HTTP and gRPC, consumes queues and runs background tasks until it is stopped.
 *
 * ```
 * $app = new App();
 * $app->http('0.0.0.0:8080')->get('/', fn () => Response::text("hello\n"));
 * $app->consume($bus, 'orders');
 * $app->task('projections', fn () => $projections->follow());
 * $app->run();
 * ```
 *
 * SIGTERM and SIGINT stop it gracefully: it accepts nothing new, cancels background tasks and completes the work in flight. Work that is
 * unfinished at the end of the grace period is cancelled. A second signal ends a process without supervisor at once. If a server, a consumer or a
 * background task fails for good, the application stops in the same way, and ends with that failure.
 */
final class App
{
    private const WEB_SERVERS = ['apache2handler', 'cgi-fcgi', 'cli-server', 'fpm-fcgi', 'litespeed'];
    /** The exit code of PHP after an uncaught exception. */
    private const FAILED = 255;
    private const SIGINT = 2;
    private const SIGTERM = 15;

    private readonly LoggerInterface $logger;
    private readonly bool $debug;
    /** @var list<array{string, Router, Limits|null, bool, Tls|null, TrustedProxies|null}> */
    private array $http = [];
    /** @var list<Server> while it runs */
    private array $servers = [];
    /** @var list<array{string, GrpcServer, Limits|null, Tls|null}> */
    private array $grpc = [];
    private ?MetricsEndpoint $endpoint = null;
    /** @var list<array{Bus, string, positive-int|null, ConsumeOptions}> */
    private array $consumers = [];
    /** @var array<string, BackgroundTask> by name */
    private array $tasks = [];
    /** @var list<\Closure(): void> */
    private array $onStart = [];
    /** @var list<\Closure(): void> */
    private array $onStop = [];
    private readonly HealthChecks $checks;
    /** When the grace period ends, in seconds of the monotonic clock; null while the application runs. */
    private ?float $until = null;
    /** Why the application ends: the first failure of a server, a consumer or a background task. */
    private ?\Throwable $failure = null;

    /**
     * @param LoggerInterface|null $logger by default stderr
     * @param bool|null $debug error pages show the exception; by default if the environment has `WEFT_ENV=development`
     * @param float $grace seconds for everything that is in flight after a signal, at least 0; then requests, calls, handlers and the
     *                     clean-up of background tasks are cancelled, and messages return to their queues. `onStop` hooks get what is left
     *                     of it, at least one second. Code that computes or ignores its cancellation is ended by the supervisor
     *                     after its `--drain-timeout`, which must be longer
     */
    public function __construct(?LoggerInterface $logger = null, ?bool $debug = null, private readonly float $grace = 30.0)
    {
        if (\is_nan($grace) || $grace < 0.0) {
            throw new \ValueError('The grace of an App must be at least 0 seconds, got ' . Number::text($grace));
        }
        $this->logger = GuardedLogger::around($logger);
        $this->debug = $debug ?? \getenv('WEFT_ENV') === 'development';
        $this->checks = new HealthChecks($this->logger, $this->reportHealth(...));
        Worker::isSupervised() && $this->logUncaught();
    }

    /** Logs an uncaught exception, because PHP's own text does not reach the log of the supervisor. */
    private function logUncaught(): void
    {
        $logger = $this->logger;
        $others = \set_exception_handler(static function (\Throwable $failure) use ($logger): never {
            $logger->critical('The application failed: {error}', ['error' => ExceptionReport::summary($failure), 'exception' => $failure]);
            exit(self::FAILED);
        });
        $others === null || \restore_exception_handler();
    }

    /**
     * Serves HTTP/1.1 and HTTP/2 on an address, with the routes of the returned router.
     *
     * @param string $address `0.0.0.0:8080`, `[::1]:8080`, `localhost:0` or `unix:/path/to/socket`; port 0 selects a free port
     * @param bool $cancelOnDisconnect cancels the task of a request when its client disconnects
     * @param TrustedProxies|null $proxies in front of the server; null believes none
     *
     * @throws \Error another `http()` has the address
     */
    public function http(string $address, ?Limits $limits = null, bool $cancelOnDisconnect = true, ?Tls $tls = null, ?TrustedProxies $proxies = null): Router
    {
        if (self::isTaken($address, \array_column($this->http, 0))) {
            throw new \Error("The application serves $address already: add the routes to the router of the first http()");
        }
        $router = new Router();
        $this->http[] = [$address, $router, $limits, $cancelOnDisconnect, $tls, $proxies];

        return $router;
    }

    /**
     * Serves gRPC and grpc-web on an address. The same address as an `http()` call shares its connections, including its
     * TLS.
     *
     * @param string $address as for `http()`
     * @param object|list<object> $services implement the interfaces that protoc-gen-weft has generated
     * @param GrpcOptions $options interceptors, limits, and the services of the server itself
     * @param Limits|null $connections as for `Weft\Grpc\Server::listen()`; ignored where an `http()` has the address
     *
     * @throws Grpc\InvalidServiceError
     * @throws \Error another `grpc()` has the address
     */
    public function grpc(
        string $address,
        object|array $services,
        GrpcOptions $options = new GrpcOptions(),
        ?Tls $tls = null,
        ?Limits $connections = null,
    ): GrpcServer {
        if (self::isTaken($address, \array_column($this->grpc, 0))) {
            throw new \Error("The application serves gRPC on $address already: give all services to the first grpc()");
        }
        $server = new GrpcServer($services, $options, $this->logger, $this->debug);
        $this->grpc[] = [$address, $server, $connections, $tls];

        return $server;
    }

    /**
     * Handles the messages of a queue, which is declared before the application listens. When the application starts, it logs the bus's
     * handlers as a table.
     *
     * @param int<1, max>|null $concurrency handlers that run at a time; null adapts the number to the observed latency
     * @param ConsumeOptions $options as for `Bus::consume()`; the application handles the signals, and its grace period applies too
     */
    public function consume(Bus $bus, string $queue, ?int $concurrency = null, ConsumeOptions $options = new ConsumeOptions()): static
    {
        $this->consumers[] = [$bus, $queue, $concurrency, new ConsumeOptions(...['signals' => false] + \get_object_vars($options))];

        return $this;
    }

    /**
     * Runs a background task while the application runs, such as a projection or a poller. It starts after the `onStart` hooks, in each
     * worker: take a `Weft\Lock\Locks` for work that only one process may do. When the application stops, the task is cancelled; its clean-up
     * may wait until the end of the grace period. The work ends when the tasks that it has started have ended, and fails if one of them fails.
     *
     * @param string $name in logs and in the task list
     * @param \Closure(): mixed $work
     * @param RestartPolicy|null $restart by default after failures, with growing pauses of 1 to 60 seconds
     *
     * @throws \Error the name is taken
     * @throws UsageError the work is a generator, which would return before its body runs
     */
    public function task(string $name, \Closure $work, ?RestartPolicy $restart = null): static
    {
        if (isset($this->tasks[$name])) {
            throw new \Error("The application has a background task \"{$name}\" already");
        }
        Generators::refuse($work, "The background task \"{$name}\"");
        $this->tasks[$name] = new BackgroundTask($name, $work, $restart ?? RestartPolicy::onFailure(), $this->logger);

        return $this;
    }

    /**
     * Calls a function before the application listens and consumes; several in their order. It may wait. If it throws, the application does
     * not start and ends with the exception. Tasks that it starts run as long as the application, and end it if they fail: {@see task()} is for
     * work that may fail.
     *
     * @param \Closure(): void $hook
     */
    public function onStart(\Closure $hook): static
    {
        Generators::refuse($hook, 'The onStart hook');
        $this->onStart[] = $hook;

        return $this;
    }

    /**
     * Calls a function when everything else has ended, also after a failure or an `exit()`; several in reverse order. It may wait within what is left of
     * the grace period, at least one second. Its exceptions are logged.
     *
     * @param \Closure(): void $hook
     */
    public function onStop(\Closure $hook): static
    {
        Generators::refuse($hook, 'The onStop hook');
        $this->onStop[] = $hook;

        return $this;
    }

    /**
     * Adds a health check: while it fails, `/ready` is answered 503 and names it. It runs in a task of its own, for the first time when the
     * application starts, and counts as failing until it has passed once. It has no influence on `/live`.
     *
     * @param \Closure(): mixed $check fails when it returns false or throws
     * @param float $every seconds between two checks, above 0
     * @param float $timeout seconds after which a check is cancelled and has failed, above 0
     *
     * @throws \Error the name is taken
     */
    public function check(string $name, \Closure $check, float $every = 5.0, float $timeout = 2.0): static
    {
        $this->checks->add($name, $check, $every, $timeout);

        return $this;
    }

    /**
     * Serves `/metrics`, `/ready` and `/live` from a separate thread, which answers even while PHP code blocks. In a worker of
     * `weft run` it has no effect: `--metrics` of the supervisor serves the metrics of all workers.
     *
     * @param string $address `127.0.0.1:9464`; port 0 selects a free port. Do not expose it to the public.
     *
     * @throws Http\InvalidAddressError
     * @throws Http\ListenException
     */
    public function metrics(string $address): static
    {
        if (!Worker::isSupervised() && !Inspection::isActive()) {
            $this->endpoint = MetricsEndpoint::open(MetricsAddress::checked($address));
            $this->logger->info('metrics, /ready and /live on http://{address}/metrics', ['address' => $this->endpoint->address()]);
        }

        return $this;
    }

    /**
     * Reads the certificates of all servers again. New connections use the new certificates, open connections continue.
     *
     * @throws Http\TlsException a file cannot be used; the old certificates stay in use
     */
    public function reloadCertificates(): void
    {
        foreach ($this->everyServer() as $server) {
            $server->reloadCertificates();
        }
    }

    /**
     * Runs until SIGTERM or SIGINT, then until the work in flight has ended.
     *
     * @param (\Closure(list<string>): void)|null $started receives the addresses once the servers listen on all of them
     *
     * @throws Http\InvalidAddressError
     * @throws Http\ListenException
     * @throws \Throwable the first failure of a server, a consumer or a background task; others are logged
     * @throws \Error called in a request of a web server, such as PHP-FPM
     */
    public function run(?\Closure $started = null): void
    {
        if (Inspection::takes($this)) {
            return;
        }
        if (\in_array(\PHP_SAPI, self::WEB_SERVERS, true)) {
            throw new \Error('App::run() serves until it is stopped, and this is one request to ' . \PHP_SAPI . ': start the program with `weft run` or `php`');
        }
        // runStopHooks() has to know an exit() from the end of the application.
        ExitHandler::prepare();
        run(function () use ($started): void {
            try {
                scope(fn() => $this->serve($started));
            } finally {
                $this->runStopHooks();
            }
        }, uncaught: $this->logDetached(...));
    }

    /** A detached task has no scope that its failure could end. */
    private function logDetached(\Throwable $failure, Task $task): void
    {
        $this->logger->error('The detached task {task} failed: {error}', ['task' => $task->name(), 'error' => $failure->getMessage(), 'exception' => $failure]);
    }

    /** @param (\Closure(list<string>): void)|null $started */
    private function serve(?\Closure $started): void
    {
        foreach ($this->onStart as $hook) {
            Generators::refuseResult($hook(), $hook, 'The onStart hook');
        }
        // From here on a signal does not end the process: what has started is stopped.
        $signals = new Signals(self::SIGTERM, self::SIGINT);
        try {
            $this->serveUntil($signals, $started);
        } finally {
            $signals->close();
        }
        $this->failure === null || throw $this->failure;
    }

    /** @param (\Closure(list<string>): void)|null $started */
    private function serveUntil(Signals $signals, ?\Closure $started): void
    {
        // Before requests arrive, which may send commands to these queues.
        foreach ($this->consumers as [$bus, $queue]) {
            $bus->queue($queue)->declare();
        }
        try {
            $this->servers = \array_map($this->open(...), $this->http);
            $this->openGrpc();
        } catch (Http\ListenException $refused) {
            Worker::cannotListen($refused->getMessage());
            throw $refused;
        }
        foreach ($this->servers as $server) {
            $this->begin('server ' . \implode(', ', $server->addresses()), $server->run(...), $signals);
        }
        foreach ($this->grpc as [, $server]) {
            $this->begin('gRPC server ' . \implode(', ', $server->addresses()), $server->run(...), $signals);
        }
        foreach ($this->consumers as [$bus, $queue, $concurrency, $options]) {
            $this->begin("consumer of $queue", static fn() => $bus->consume($queue, $concurrency, $options), $signals);
        }
        $tasks = \array_map(fn(BackgroundTask $task): Task => $this->begin("background task {$task->name}", $task->run(...), $signals), \array_values($this->tasks));
        $isIdle = $this->isIdle();
        $checks = $this->checks->start();
        $addresses = \array_merge([], ...\array_map(static fn(Server|GrpcServer $server) => $server->addresses(), $this->everyServer()));
        $this->logHandlers();
        $this->checkDrainTimeout();
        $isIdle && $this->logger->warning('The application has no server, queue or task: it only waits for SIGTERM');
        $started === null ? $this->announce($addresses) : $started($addresses);
        $this->reportHealth();
        Worker::ready();
        try {
            $signals->wait();
        } finally {
            // Also after the failure of a task that an onStart hook has started, which cancels everything at once.
            Worker::draining();
            $this->until = \hrtime(true) / 1e9 + $this->grace;
            $this->endpoint?->update(false, true, []);
        }
        \array_walk($checks, static fn(Task $check) => $check->cancel('the application stops'));
        $this->stop($tasks);
    }

    /** Starts work whose failure stops the application: what is in flight beside it completes. */
    private function begin(string $name, \Closure $work, Signals $signals): Task
    {
        return async(function () use ($name, $work, $signals): void {
            try {
                $work();
            } catch (\Throwable $failure) {
                !Scheduler::isCancelledBy($failure) || throw $failure;
                $isFirst = $this->failure === null;
                $this->failure ??= $failure;
                $this->logger->error($isFirst && $this->until === null ? 'The {task} failed, and the application stops: {error}' : 'The {task} failed while the application stops: {error}', [
                    'task' => $name,
                    'error' => $failure->getMessage(),
                    // The first is reported with the end of the application.
                    ...$isFirst ? [] : ['exception' => $failure],
                ]);
                $signals->giveUp();
            }
        })->named($name);
    }

    /**
     * @internal
     *
     * @return array<string, Router> by address
     */
    public function routers(): array
    {
        $routers = [];
        foreach ($this->http as [$address, $router]) {
            $routers[$address] = $router;
        }

        return $routers;
    }

    /** @param array{string, Router, Limits|null, bool, Tls|null, TrustedProxies|null} $http */
    private function open(array $http): Server
    {
        [$address, $router, $limits, $cancelOnDisconnect, $tls, $proxies] = $http;
        $server = new Server($router, $limits, $this->logger, $this->debug, $cancelOnDisconnect, $proxies);
        $server->listen($address, tls: $tls);

        return $server;
    }

    private function openGrpc(): void
    {
        foreach ($this->grpc as [$address, $server, $connections, $tls]) {
            $shared = \array_search($address, \array_column($this->http, 0), true);
            $shared === false ? $server->listen($address, connections: $connections, tls: $tls) : $server->share($this->servers[$shared]);
        }
    }

    /** @param list<string> $addresses */
    private function announce(array $addresses): void
    {
        if (Worker::isSupervised()) {
            Worker::listening($addresses);

            return;
        }
        foreach ($addresses as $address) {
            $this->logger->info('listening on {address}', ['address' => $address]);
        }
    }

    /** The handlers of the first worker are those of all. */
    private function logHandlers(): void
    {
        if (Worker::index() > 1) {
            return;
        }
        foreach ($this->consumers as [$bus, $queue]) {
            foreach ($bus->admin()->handlers() as $handler) {
                $this->logger->info('{message}: {handler}, queue: {queue}, retries: {retries}, timeout: {timeout}, transaction: {transaction}', $handler->columns() + ['queue' => $queue]);
            }
        }
    }

    /** The supervisor kills a worker that still cleans up after its own limit, which counts from the same signal. */
    private function checkDrainTimeout(): void
    {
        $limit = Worker::drainTimeout();
        if ($limit !== null && $this->grace >= $limit && Worker::index() === 1) {
            $this->logger->warning(
                'The grace of the App is {grace} s and --drain-timeout is {drain_timeout} s: a worker with unfinished work is killed before that work is cancelled and the onStop hooks run. '
                . 'Make --drain-timeout longer than the grace',
                ['grace' => $this->grace, 'drain_timeout' => $limit],
            );
        }
    }

    /** Whether nothing has been given to it and nothing else runs: an `onStart` hook may have opened what the application does. */
    private function isIdle(): bool
    {
        return $this->http === [] && $this->grpc === [] && $this->consumers === [] && $this->tasks === [] && $this->onStart === []
            && Worker::index() === 1 && \count(tasks()) === 1;
    }

    private function reportHealth(): void
    {
        if ($this->until === null) {
            $failing = $this->checks->failing();
            $this->endpoint?->update($failing === [], false, $failing);
            Worker::health($failing);
        }
    }

    /** @param list<Task> $tasks the background tasks */
    private function stop(array $tasks): void
    {
        foreach ($this->tasks as $task) {
            $task->stop();
        }
        if ($tasks !== []) {
            detach($this->endTasks(...), $tasks)->named('grace period of background tasks');
        }
        // Concurrently, so that a broker that does not answer does not delay the servers.
        $buses = \array_map(fn(array $consumer) => fn() => $consumer[0]->stop($this->grace), $this->consumers);
        // gRPC servers stop the HTTP servers they share, so they come first.
        $servers = \array_map(fn(Server|GrpcServer $server) => fn() => $server->stop($this->grace), \array_reverse($this->everyServer()));
        all([...$buses, ...$servers]);
    }

    /** @param list<Task> $tasks the background tasks */
    private function endTasks(array $tasks): void
    {
        delay($this->grace);
        foreach ($tasks as $task) {
            if (!$task->isDone()) {
                $this->logger->warning('The {task} still cleans up after the grace period of {seconds} seconds and is cancelled', ['task' => $task->name(), 'seconds' => $this->grace]);
                $task->cancel('the grace period is over');
            }
        }
    }

    private function runStopHooks(): void
    {
        foreach (\array_reverse($this->onStop) as $hook) {
            $left = ($this->until ?? \INF) - \hrtime(true) / 1e9;
            try {
                // After an exit() no task can start, which timeout() needs; Blocking limits the waits of a hook then.
                $result = Scheduler::$processEnds ? $hook() : timeout(\max(1.0, \min($left, $this->grace)), $hook);
                Generators::refuseResult($result, $hook, 'The onStop hook');
            } catch (\Throwable $thrown) {
                $this->logger->error('An onStop hook failed: {error}', ['error' => $thrown->getMessage(), 'exception' => $thrown]);
            }
        }
    }

    /**
     * Port 0 is another port each time.
     *
     * @param array<array-key, mixed> $addresses
     */
    private static function isTaken(string $address, array $addresses): bool
    {
        $selectsPort = \str_ends_with($address, ':0') && !\str_starts_with($address, 'unix:');

        return !$selectsPort && \in_array($address, $addresses, true);
    }

    /** @return list<Server|GrpcServer> those of HTTP, then those of gRPC */
    private function everyServer(): array
    {
        return [...\array_values($this->servers), ...\array_map(static fn(array $grpc): GrpcServer => $grpc[1], $this->grpc)];
    }
}
