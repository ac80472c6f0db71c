<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Psr\Log\LoggerInterface;
use Weft\Grpc\Internal\Calls;
use Weft\Grpc\Internal\Channelz;
use Weft\Grpc\Internal\Json\Bindings;
use Weft\Grpc\Internal\Method;
use Weft\Grpc\Internal\MethodTable;
use Weft\Grpc\Internal\Reflection;
use Weft\Grpc\Internal\Services;
use Weft\Http;
use Weft\Log\StreamLogger;
use Weft\Native\GrpcServer;
use Weft\Runtime\Internal\Scheduler;

use function Weft\all;

/**
 * Serves gRPC, grpc-web, and HTTP with JSON where it is asked for: each call is a task.
 *
 * A service is an object that implements the interface `protoc-gen-weft` made of it. Health checks (`grpc.health.v1`) are served
 * unless they are switched off, reflection (v1 and v1alpha) where it is asked for.
 */
final class Server
{
    /** Seconds a connection is kept without a call: clients hold on to theirs. */
    private const IDLE = 3_600.0;
    /** Seconds, as gRPC's other servers have them. */
    private const PING_INTERVAL = 7_200.0;
    private const MIN_PING_INTERVAL = 300.0;

    private readonly Services $services;
    private readonly MethodTable $table;
    private readonly ?Bindings $bindings;
    private readonly Health $health;
    /** @var list<\Closure> */
    private readonly array $interceptors;
    private readonly LoggerInterface $logger;
    private readonly Limits $limits;
    private ?GrpcServer $native = null;
    private ?Calls $calls = null;
    /** @var list<Http\Server> whose connections carry the calls */
    private array $carriers = [];
    /** @var list<Http\Server> those of them that are for gRPC only */
    private array $own = [];
    private bool $stopped = false;

    /**
     * @param object|list<object> $services
     * @param list<callable(Call, mixed, \Closure(mixed): mixed): mixed> $interceptors around every handler, the first is the
     *     outermost; each gets the call, the request (a message, or an iterable of messages) and what comes next, and returns what
     *     that returned (a message, or an iterable of them), or throws a StatusException
     * @param bool $reflection lets tools such as grpcurl ask what is served
     * @param list<string> $webOrigins origins whose pages may call by grpc-web, such as `https://app.example`; `*` is every one
     * @param LoggerInterface|null $logger hears of failed handlers; by default lines on stderr
     * @param bool $debug clients see the message of an exception that is no StatusException
     * @param bool $channelz lets tools ask for the connections and their calls, by `grpc.channelz.v1`
     * @param bool $json methods that `google.api.http` gives a path in their .proto file are served by HTTP with JSON, too
     * @param bool $health serves health checks, `grpc.health.v1`
     *
     * @throws InvalidServiceError
     */
    public function __construct(
        object|array $services,
        array $interceptors = [],
        ?Limits $limits = null,
        bool $reflection = false,
        private readonly array $webOrigins = [],
        ?LoggerInterface $logger = null,
        private readonly bool $debug = false,
        bool $json = false,
        bool $channelz = false,
        bool $health = true,
    ) {
        $services = \is_array($services) ? \array_values($services) : [$services];
        $this->health = new Health(\array_keys((new Services($services))->interfaces));
        if ($health) {
            $services[] = $this->health;
        }
        if ($channelz) {
            $services[] = new Channelz(fn(): array => $this->native()->callStats(), fn(): array => $this->carriers);
        }
        if ($reflection) {
            \array_push($services, ...Reflection::of($services));
        }
        $this->services = new Services($services);
        $this->interceptors = \array_map(static fn(callable $one): \Closure => $one(...), \array_values($interceptors));
        $this->limits = $limits ?? new Limits();
        $this->table = new MethodTable($this->services->methods, $this->limits);
        $this->bindings = $json ? new Bindings($this->services) : null;
        $this->logger = $logger ?? StreamLogger::fromEnvironment();
    }

    /** What the health checks say. */
    public function health(): Health
    {
        return $this->health;
    }

    /**
     * Starts to accept connections; they are served once `run()` is. What is no gRPC is answered 415.
     *
     * @param string $address `0.0.0.0:9090`, `[::1]:9090`, `localhost:0` or `unix:/path/to/socket`; port 0 is one that is free
     * @param bool $sharePort other processes may listen on the same port, and the kernel spreads the connections
     * @param Http\Limits|null $connections by default they are kept an hour without a call, a
     *     silent client is asked after two hours whether it is there, and clients may ping every five minutes
     *
     * @return string the address with the real port
     *
     * @throws Http\InvalidAddressError
     * @throws Http\ListenException
     * @throws Http\TlsException a certificate cannot be used
     */
    public function listen(string $address, bool $sharePort = false, ?Http\Limits $connections = null, ?Http\Tls $tls = null): string
    {
        $none = static fn(): never => throw new \LogicException('What is no gRPC has its answer before');
        $connections ??= new Http\Limits(idleTimeout: self::IDLE, pingInterval: self::PING_INTERVAL, minPingInterval: self::MIN_PING_INTERVAL);
        $server = new Http\Server($none, $connections, $this->logger);
        $address = $server->listen($address, $sharePort, $tls);
        $server->carry($this->native(), true);
        $this->carriers[] = $this->own[] = $server;

        return $address;
    }

    /** Serves on the connections of an HTTP server too, which goes on with what is no gRPC. `stop()` stops it. */
    public function share(Http\Server $server): void
    {
        $server->carry($this->native(), false);
        $this->carriers[] = $server;
    }

    /**
     * Reads the files of all certificates again: new connections get the new ones, open ones go on.
     *
     * @throws Http\TlsException a file cannot be used; the old certificates stay in use
     */
    public function reloadCertificates(): void
    {
        foreach ($this->own as $server) {
            $server->reloadCertificates();
        }
    }

    /** @return list<string> what it listens on itself, with real ports */
    public function addresses(): array
    {
        return \array_merge([], ...\array_map(static fn(Http\Server $server): array => $server->addresses(), $this->own));
    }

    /** Serves until `stop()`. Must be called inside `Weft\run()`. */
    public function run(): void
    {
        $scheduler = Scheduler::$current
            ?? throw new \Error('Weft\Grpc\Server::run() starts a task per call: call it inside Weft\run(), or use Weft\App');
        foreach ($this->own as $server) {
            \Weft\async($server->run(...))->named('server ' . \implode(', ', $server->addresses()));
        }
        $this->calls()->serve($scheduler);
    }

    /**
     * Health checks say NOT_SERVING, no connection is accepted any more and the open ones end with what is in flight (GOAWAY).
     * Returns once the last is closed, after `$grace` seconds at most; what has not ended by then is cancelled.
     */
    public function stop(float $grace = 30.0): void
    {
        if ($this->stopped) {
            return;
        }
        $this->stopped = true;
        $this->health->shutDown();
        all(\array_map(static fn(Http\Server $server) => static fn() => $server->stop($grace), $this->carriers));
        $this->calls()->cancel("the server was stopped and it did not end within $grace seconds");
        $this->calls()->end();
    }

    /** Calls that have arrived and not ended. */
    public function inFlight(): int
    {
        return $this->native?->inFlight() ?? 0;
    }

    private function native(): GrpcServer
    {
        /** @var array<string, mixed> $limits */
        $limits = ['webOrigins' => $this->webOrigins, 'concurrency' => $this->table->concurrency] + \get_object_vars($this->limits);

        return $this->native ??= GrpcServer::open($this->table->methods, $this->bindings?->rules ?? [], $limits);
    }

    private function calls(): Calls
    {
        $intercepted = fn(Method $method): Method => $method->intercepted($this->interceptors);

        $methods = [...$this->services->methods, ...$this->bindings?->methods ?? []];

        return $this->calls ??= new Calls($this->native(), \array_map($intercepted, $methods), $this->logger, $this->debug);
    }
}
