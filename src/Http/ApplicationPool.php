<?php

declare(strict_types=1);

namespace Weft\Http;

use Psr\Log\LoggerInterface;
use Weft\Http\Internal\ApplicationInstance;
use Weft\Http\Internal\Form;
use Weft\Http\Internal\InstanceMemory;
use Weft\Http\Internal\RealmBody;
use Weft\Http\Internal\RealmRequest;
use Weft\Http\Internal\SlowClients;
use Weft\Http\Internal\State\StateWatch;
use Weft\Internal\Number;
use Weft\Log\Internal\ExceptionReport;
use Weft\Log\Internal\GuardedLogger;
use Weft\Native;
use Weft\Pool\Holder;
use Weft\Pool\Leases;
use Weft\Pool\Lifetime;
use Weft\Pool\Pool;
use Weft\Pool\PoolExhaustedException;
use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Pool\Validation;
use Weft\Runtime\Internal\Scheduler;

use function Weft\tasks;

/**
 * Instances of one application, each in a realm of its own ({@see \Weft\Runtime\Realm}) and with one request at a time.
 *
 * An instance is booted when none is idle, in its realm. The instance that was returned last is lent first, and one that was idle for ten
 * minutes is dropped. After a request it is reset. An instance that has thrown or exited is replaced, and
 * one that {@see Recycling} says is spent. A reset that fails does not change the result of the request: it is logged, and the instance
 * is replaced.
 *
 * {@see RealmHandler}, {@see \Weft\Bridge\Symfony\SymfonyHandler} and the bridges of frameworks serve requests with it; a consumer of messages uses it as well:
 *
 * ```
 * $applications = new ApplicationPool(
 *     static function (): Kernel {
 *         $kernel = new Kernel('prod', false);
 *         $kernel->boot();
 *
 *         return $kernel;
 *     },
 *     // `$kernel->boot()` resets services only after `$kernel->handle()`.
 *     reset: static fn (Kernel $kernel) => $kernel->getContainer()->get('services_resetter')->reset(),
 * );
 * $applications->with(static fn (Kernel $kernel) => $kernel->getContainer()->get(Newsletter::class)->send($message));
 * ```
 *
 * @template T of object
 */
final class ApplicationPool
{
    /** The most instances that are chosen without `$size`. */
    public const MOST_INSTANCES = 32;

    /** Seconds that a request waits for an instance. */
    public const BORROW_TIMEOUT = 5.0;

    /** This many are named in the log. */
    private const HOLDERS_NAMED = 5;

    /** PHP runs on the command line here: `dump()` and `dd()` would write to the terminal and not into the response. */
    private const SERVING = ['VAR_DUMPER_FORMAT' => 'html'];

    /** @var Pool<ApplicationInstance<T>> */
    private readonly Pool $instances;

    private readonly InstanceMemory $memory;
    private readonly LoggerInterface $logger;
    private readonly StateWatch $watch;

    /** @var array<string, string> what `$_SERVER` has where a request has no such variable, with those of the environment */
    private readonly array $environment;

    private int $size;

    /** @internal */
    public readonly SlowClients $slowClients;

    /** @var array{booted: int, served: int, exhausted: int, failed: int, exited: int, spent: int} */
    private array $counts = ['booted' => 0, 'served' => 0, 'exhausted' => 0, 'failed' => 0, 'exited' => 0, 'spent' => 0];

    /**
     * @param \Closure(): T $boot makes an instance that shares no state of requests with others; runs in its realm and may wait
     * @param int<1, max>|null $size the maximum number of instances; null: as many as requests run at the same time, up to
     *     {@see ApplicationPool::MOST_INSTANCES} and to what fits into half of the memory that the process may use
     * @param float $wait seconds that a request waits for an instance, at least 0
     * @param Recycling $recycling when an instance is replaced although it works
     * @param (\Closure(T): mixed)|null $reset runs in the realm after each request, and before an instance is dropped whose request has
     *     failed, was cancelled or has exited; an exception of it is logged and the instance is replaced
     * @param (\Closure(T): mixed)|null $close runs in the realm before an instance is dropped
     * @param LoggerInterface|null $logger receives who holds the instances when a request has waited too long, and failed
     *     resets; null: stderr
     * @param string $name of the pool in messages and metrics, such as "kernels"
     *
     * @throws \ValueError for a size below 1 or a wait below 0
     */
    public function __construct(
        \Closure $boot,
        ?int $size = null,
        private readonly float $wait = self::BORROW_TIMEOUT,
        private readonly Recycling $recycling = new Recycling(),
        private readonly ?\Closure $reset = null,
        ?\Closure $close = null,
        ?LoggerInterface $logger = null,
        public readonly string $name = 'applications',
    ) {
        if ($size !== null && $size < 1) {
            throw new \ValueError("A pool of $name needs at least 1 instance, got \$size $size");
        }
        if (!($wait >= 0.0)) {
            throw new \ValueError("The wait for one of the $name must be at least 0 seconds, got \$wait " . Number::text($wait));
        }
        require_once __DIR__ . '/Internal/sapi.php';
        $this->memory = new InstanceMemory($size);
        $this->size = $this->memory->size();
        $this->slowClients = new SlowClients($this->size);
        $this->logger = GuardedLogger::around($logger);
        $this->watch = new StateWatch($name, $this->logger);
        $this->environment = ['GATEWAY_INTERFACE' => 'CGI/1.1', 'REMOTE_ADDR' => '127.0.0.1'] + RealmRequest::environment() + self::SERVING;
        $this->instances = new Pool(
            fn(): ApplicationInstance => $this->boot($boot),
            new PoolOptions(
                size: $this->size,
                timeouts: new Timeouts(borrow: $wait, create: 0.0),
                lifetime: new Lifetime(max: $recycling->age),
                validation: new Validation(after: 0.0),
                leases: new Leases(autoReturn: false),
                name: $name,
            ),
            close: fn(ApplicationInstance $instance) => $instance->close($this->reset, $close, fn(\Throwable $failure) => $this->reportReset($failure, '')),
        );
    }

    /**
     * Lends an instance until it is released or discarded. One that is neither is discarded with the last reference to it.
     *
     * @param string $work what it is lent for, such as `GET /orders`; the same for work that is alike
     *
     * @return BorrowedApplication<T>
     *
     * @throws ApplicationPoolExhaustedException all instances were in use for as long as a request waits
     * @throws \Weft\Pool\FactoryException `$boot` threw
     * @throws \Weft\Runtime\CancelledException the task was cancelled while it waited
     */
    public function borrow(string $work = ''): BorrowedApplication
    {
        try {
            return new BorrowedApplication($this, $this->instances, $this->instances->borrow(), $work);
        } catch (PoolExhaustedException $exhausted) {
            throw $this->exhausted($exhausted);
        }
    }

    /**
     * Runs `$work` with an instance, in its realm, until the tasks that it starts have ended, and resets the instance. The result of `$work` counts even if
     * the reset fails. `$work` sees no request: superglobals, `php://input` and session are empty, the settings are those of the boot.
     *
     * @template R
     *
     * @param \Closure(T): R $work an exception of it discards the instance
     *
     * @return R
     *
     * @throws ApplicationPoolExhaustedException
     */
    public function with(\Closure $work): mixed
    {
        $borrowed = $this->borrow();
        try {
            $result = $borrowed->run($work);
        } catch (\Throwable $thrown) {
            $borrowed->discard();
            throw $thrown;
        }
        $borrowed->release();

        return $result;
    }

    /**
     * Serves a request with an instance, as PHP-FPM would: superglobals, `php://input`, `header()`, `setcookie()`, `session_start()` and
     * `http_response_code()` are those of the request.
     *
     * A {@see Response} that `$handle` returns is sent after what the application has printed, and its status is that of the answer;
     * header fields of `header()` come before its own. Any other result is ignored, and the output is the answer.
     *
     * `exit()` and `die()` end the request with what it has printed so far. `$terminate` does not run then, and the instance is replaced,
     * because it may be in the middle of anything.
     *
     * @param \Closure(T, Request): mixed $handle runs in the realm
     * @param (\Closure(T): mixed)|null $terminate runs in the realm when the connection has the response; the instance is in use until
     *     it returns
     * @param array<string, mixed> $server `$_SERVER` variables in place of the request's own
     *
     * @throws ApplicationPoolExhaustedException
     */
    public function serve(Request $request, \Closure $handle, ?\Closure $terminate = null, array $server = []): Response
    {
        // A client that sends slowly must not hold an instance meanwhile.
        Form::isForm($request) ? $request->parsedForm(FormLimits::ofPhp()) : $request->body();
        $borrowed = $this->borrow("{$request->method()} {$request->path()}");
        try {
            [$response, $hasExited] = $borrowed->run(fn(object $application, Native\Realm $realm): array => RealmRequest::handle(
                $realm,
                $request,
                $application,
                $handle,
                $server,
                $this->environment,
                endsHere: $terminate === null,
            ));
        } catch (\Throwable $thrown) {
            $borrowed->discard();
            throw $thrown;
        }
        if ($hasExited) {
            $borrowed->exited();

            return $response;
        }
        if ($terminate === null && \is_string($response->body)) {
            $borrowed->end(null, hasEnded: true);

            return $response;
        }
        if (!\is_string($response->body)) {
            $response = new Response($response->status, $response->headers, new RealmBody($borrowed, $response->body));
        }
        $request->afterResponse(static function () use ($borrowed, $terminate): void {
            try {
                // An instance whose stream has failed or exited is discarded by then.
                $borrowed->isOpen() && $borrowed->end($terminate);
            } catch (\Throwable $thrown) {
                $borrowed->discard();
                throw $thrown;
            }
        });

        return $response;
    }

    /** The maximum number of instances; without `$size` it follows what the instances so far have taken. */
    public function size(): int
    {
        return $this->size;
    }

    /**
     * The requests that hold instances, the longest first: `GET /orders from 127.0.0.1:50122 (12.3 s, waits for a response of 10.0.0.7)`.
     *
     * @return list<string>
     */
    public function holders(): array
    {
        $tasks = \array_column(tasks(), null, 'id');

        return \array_map(static function (Holder $holder) use ($tasks): string {
            $task = $tasks[(int) $holder->task] ?? null;
            if ($task === null) {
                return \sprintf('task #%d (%.1f s)', (int) $holder->task, $holder->held);
            }
            $wait = $task->waitsFor === null ? '' : ", waits for $task->waitsFor";

            return \sprintf('%s (%.1f s%s)', $task->name, $holder->held, $wait);
        }, $this->instances->holders());
    }

    /**
     * `size`, `in_use`, `idle` and `waiting` are now; the others have been counted since the pool was made: instances `booted`, requests
     * `served`, requests refused because the pool was `exhausted`, instances replaced because they have `failed`, `exited` or were `spent`.
     *
     * @return array{size: int, in_use: int, idle: int, waiting: int, booted: int, served: int, exhausted: int, failed: int, exited: int, spent: int}
     */
    public function stats(): array
    {
        $pool = $this->instances->stats();

        return [
            'size' => $this->size,
            'in_use' => (int) $pool['in_use'],
            'idle' => (int) $pool['idle'],
            'waiting' => (int) $pool['waiting'],
        ] + $this->counts;
    }

    /** Refuses further requests, drops idle instances, and returns when the last one is returned and dropped. */
    public function close(): void
    {
        $this->instances->close();
    }

    /**
     * @internal after a request, in one stay in its realm: terminates it and resets the instance. By then the result of the request is
     * known, so an exception of the reset is logged; one of `$terminate` is thrown.
     *
     * @param ApplicationInstance<T> $instance
     * @param string $work what it was lent for
     * @param (\Closure(T): mixed)|null $terminate
     * @param bool $hasEnded whether nothing of the request is left in the realm
     *
     * @return string|null why the instance must be replaced, as {@see count()} takes it; null: it need not
     */
    public function recover(ApplicationInstance $instance, string $work, ?\Closure $terminate, bool $hasEnded): ?string
    {
        if ($hasEnded && $this->reset === null) {
            $replaced = $this->ended($instance);
            $instance->isReset = true;
        } else {
            $isResetting = false;
            try {
                $replaced = $instance->run(function (object $application, Native\Realm $realm) use ($instance, $terminate, $hasEnded, &$isResetting): ?string {
                    if (!$hasEnded && RealmRequest::terminate($realm, $application, $terminate)) {
                        return 'exited';
                    }
                    $replaced = $this->ended($instance);
                    $isResetting = true;
                    // A spent one as well: connections that it has left open would stay until the garbage collector runs.
                    $this->reset === null || ($this->reset)($application);
                    $instance->isReset = true;

                    return $replaced;
                });
            } catch (\Throwable $thrown) {
                if (!$isResetting || Scheduler::isCancelledBy($thrown)) {
                    throw $thrown;
                }
                $instance->isReset = true;
                $this->reportReset($thrown, $work);

                return 'failed';
            }
        }
        if ($replaced === null && $instance->hasTasks()) {
            $this->logger->warning('Pool "{pool}" replaces an instance in whose realm detached tasks still run', ['pool' => $this->name, 'work' => $work]);
            $replaced = 'failed';
        }
        $replaced === null && $this->watch->after($instance, $work);

        return $replaced;
    }

    /** @param ApplicationInstance<T> $instance */
    private function ended(ApplicationInstance $instance): ?string
    {
        $this->counts['served']++;
        $instance->requests++;
        $isSpent = $this->recycling->requests > 0 && $instance->requests >= $this->recycling->requests
            || $this->recycling->memory > 0 && \memory_get_usage() >= $this->recycling->memory;

        return $isSpent ? 'spent' : null;
    }

    private function reportReset(\Throwable $failure, string $work): void
    {
        $this->logger->error('Pool "{pool}" replaces an instance whose reset failed: {error}', [
            'pool' => $this->name,
            'error' => ExceptionReport::summary($failure),
            'exception' => $failure,
            'work' => $work,
        ]);
    }

    /** @internal counts a replacement, by reason */
    public function count(string $reason): void
    {
        $this->counts[$reason]++;
        if (Native\measured()) {
            Native\addToCounter('weft_application_replaced_total', 'Instances of applications that were replaced, by reason.', ['pool' => $this->name, 'reason' => $reason], 1);
        }
    }

    /**
     * @param \Closure(): T $boot
     *
     * @return ApplicationInstance<T>
     */
    private function boot(\Closure $boot): ApplicationInstance
    {
        $instance = new ApplicationInstance($boot);
        $this->counts['booted']++;
        $pool = $this->instances->stats();
        $size = $this->memory->size((int) $pool['in_use'] + (int) $pool['idle'] + 1);
        if ($size !== $this->size) {
            $this->size = $size;
            $this->slowClients->instances = $size;
            $this->instances->resize($size);
        }

        return $instance;
    }

    /** The client is not told who holds the instances; the log is. */
    private function exhausted(PoolExhaustedException $cause): ApplicationPoolExhaustedException
    {
        $this->counts['exhausted']++;
        $stats = $this->instances->stats();
        $holders = $this->holders();
        $others = \max(0, \count($holders) - self::HOLDERS_NAMED);
        $named = \implode('; ', \array_slice($holders, 0, self::HOLDERS_NAMED)) . ($others === 0 ? '' : "; and $others more");
        $this->logger->warning('Pool "{pool}" is exhausted: {in_use} of {size} {pool} in use, {waiting} waiting, timed out after {wait} s. Longest holders: {holders}', [
            'pool' => $this->name,
            'in_use' => (int) $stats['in_use'],
            'size' => $this->size,
            'waiting' => (int) $stats['waiting'],
            'wait' => $this->wait,
            // On a busy machine they may have returned theirs by now.
            'holders' => $named === '' ? 'none any more' : $named,
        ]);

        return new ApplicationPoolExhaustedException(
            "503 Service Unavailable: all $this->name of the application ($this->size) were busy for $this->wait s",
            $holders,
            $cause,
        );
    }
}
