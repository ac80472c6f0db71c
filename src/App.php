<?php

declare(strict_types=1);

namespace Weft;

use Psr\Log\LoggerInterface;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Grpc\Limits as GrpcLimits;
use Weft\Grpc\Server as GrpcServer;
use Weft\Http\Limits;
use Weft\Http\Router;
use Weft\Http\Server;
use Weft\Http\Tls;
use Weft\Log\StreamLogger;
use Weft\Native\MetricsEndpoint;
use Weft\Workers\Worker;

/**
 * An application: one process that serves HTTP and gRPC and consumes queues until it is stopped.
 *
 * ```
 * $app = new App();
 * $app->http('0.0.0.0:8080')->get('/', fn () => Response::text("hello\n"));
 * $app->consume($bus, 'orders');
 * $app->run();
 * ```
 *
 * SIGTERM and SIGINT stop it gracefully: it accepts nothing new and completes the work in flight. A second signal ends it at
 * once. If a server or a consumer fails, the application ends with that failure.
 */
final class App
{
    private const WEB_SERVERS = ['apache2handler', 'cgi-fcgi', 'cli-server', 'fpm-fcgi', 'litespeed'];

    private readonly LoggerInterface $logger;
    private readonly bool $debug;
    /** @var list<array{string, Router, Limits|null, bool, Tls|null}> */
    private array $http = [];
    /** @var list<Server> while it runs */
    private array $servers = [];
    /** @var list<array{string, GrpcServer, Limits|null, Tls|null}> */
    private array $grpc = [];
    private ?MetricsEndpoint $endpoint = null;
    /** @var list<array{Bus, string, positive-int|null}> */
    private array $consumers = [];

    /**
     * @param LoggerInterface|null $logger by default stderr
     * @param bool|null $debug error pages show the exception; by default if the environment has `WEFT_ENV=development`
     * @param float $grace seconds for the work in flight after a signal, at least 0; then requests are cancelled and
     *                     messages return to their queues
     */
    public function __construct(?LoggerInterface $logger = null, ?bool $debug = null, private readonly float $grace = 30.0)
    {
        if (\is_nan($grace) || $grace < 0.0) {
            throw new \ValueError("The grace of an App must be at least 0 seconds, got {$grace}");
        }
        $this->logger = $logger ?? StreamLogger::fromEnvironment();
        $this->debug = $debug ?? \getenv('WEFT_ENV') === 'development';
    }

    /**
     * Serves HTTP/1.1 and HTTP/2 on an address, with the routes of the returned router.
     *
     * @param string $address `0.0.0.0:8080`, `[::1]:8080`, `localhost:0` or `unix:/path/to/socket`; port 0 selects a free port
     * @param bool $cancelOnDisconnect cancels the task of a request when its client disconnects
     */
    public function http(string $address, ?Limits $limits = null, bool $cancelOnDisconnect = true, ?Tls $tls = null): Router
    {
        $router = new Router();
        $this->http[] = [$address, $router, $limits, $cancelOnDisconnect, $tls];

        return $router;
    }

    /**
     * Serves gRPC and grpc-web on an address. The same address as an `http()` call shares its connections, including its
     * TLS.
     *
     * @param string $address as for `http()`
     * @param object|list<object> $services implement the interfaces that protoc-gen-weft has generated
     * @param list<callable> $interceptors around every handler, see `Weft\Grpc\Server`
     * @param bool $reflection serves reflection for tools such as grpcurl
     * @param list<string> $webOrigins origins whose pages may call by grpc-web; `*` allows every origin
     * @param Limits|null $connections as for `Weft\Grpc\Server::listen()`; ignored where an `http()` has the address
     * @param bool $channelz serves channelz: connections and their calls
     * @param bool $json serves methods with a `google.api.http` rule by HTTP with JSON as well
     * @param bool $health serves health checks, `grpc.health.v1`
     *
     * @throws Grpc\InvalidServiceError
     */
    public function grpc(
        string $address,
        object|array $services,
        array $interceptors = [],
        ?GrpcLimits $limits = null,
        bool $reflection = false,
        array $webOrigins = [],
        ?Tls $tls = null,
        ?Limits $connections = null,
        bool $json = false,
        bool $channelz = false,
        bool $health = true,
    ): GrpcServer {
        $server = new GrpcServer($services, $interceptors, $limits, $reflection, $webOrigins, $this->logger, $this->debug, $json, $channelz, $health);
        $this->grpc[] = [$address, $server, $connections, $tls];

        return $server;
    }

    /**
     * Handles the messages of a queue.
     *
     * @param int<1, max>|null $concurrency handlers that run at a time; null adapts the number to the observed latency
     */
    public function consume(Bus $bus, string $queue, ?int $concurrency = null): static
    {
        $this->consumers[] = [$bus, $queue, $concurrency];

        return $this;
    }

    /**
     * Serves `/metrics`, `/ready` and `/live` from a separate thread, which answers even while PHP code blocks. In a worker of
     * `weft run` it has no effect: `--metrics` of the supervisor serves the metrics of all workers.
     *
     * @param string $address `127.0.0.1:9464`; port 0 selects a free port. Do not expose it to the public.
     *
     * @throws Http\ListenException
     */
    public function metrics(string $address): static
    {
        if (!Worker::isSupervised()) {
            $this->endpoint = MetricsEndpoint::open($address);
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
     * @throws \Throwable the failure of a consumer
     * @throws \Error called in a request of a web server, such as PHP-FPM
     */
    public function run(?\Closure $started = null): void
    {
        if (\in_array(\PHP_SAPI, self::WEB_SERVERS, true)) {
            throw new \Error('App::run() serves until it is stopped, and this is one request to ' . \PHP_SAPI . ': start the program with `weft run` or `php`');
        }
        run(function () use ($started): void {
            $this->servers = \array_map($this->open(...), $this->http);
            $this->openGrpc();
            foreach ($this->servers as $server) {
                async($server->run(...))->named('server ' . \implode(', ', $server->addresses()));
            }
            foreach ($this->grpc as [, $server]) {
                async($server->run(...))->named('gRPC server ' . \implode(', ', $server->addresses()));
            }
            foreach ($this->consumers as [$bus, $queue, $concurrency]) {
                async(static fn() => $bus->consume($queue, $concurrency, new ConsumeOptions(signals: false)))->named("consumer of $queue");
            }
            $addresses = \array_merge([], ...\array_map(static fn(Server|GrpcServer $server) => $server->addresses(), $this->everyServer()));
            $started === null ? $this->announce($addresses) : $started($addresses);
            $this->endpoint?->update(true, false);
            Worker::untilStopped();
            $this->endpoint?->update(false, true);
            $this->stop();
        });
    }

    /** @param array{string, Router, Limits|null, bool, Tls|null} $http */
    private function open(array $http): Server
    {
        [$address, $router, $limits, $cancelOnDisconnect, $tls] = $http;
        $server = new Server($router, $limits, $this->logger, $this->debug, $cancelOnDisconnect);
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

    private function stop(): void
    {
        // Concurrently, so that a broker that does not answer does not delay the servers.
        $buses = \array_map(fn(array $consumer) => fn() => $consumer[0]->stop($this->grace), $this->consumers);
        // gRPC servers stop the HTTP servers they share, so they come first.
        $servers = \array_map(fn(Server|GrpcServer $server) => fn() => $server->stop($this->grace), \array_reverse($this->everyServer()));
        all([...$buses, ...$servers]);
    }

    /** @return list<Server|GrpcServer> those of HTTP, then those of gRPC */
    private function everyServer(): array
    {
        return [...\array_values($this->servers), ...\array_map(static fn(array $grpc): GrpcServer => $grpc[1], $this->grpc)];
    }
}
