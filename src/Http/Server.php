<?php

declare(strict_types=1);

namespace Weft\Http;

use Psr\Log\LoggerInterface;
use Weft\Http\Internal\Requests;
use Weft\Log\Internal\GuardedLogger;
use Weft\Native\GrpcServer;
use Weft\Native\HttpServer;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Runtime\TimeoutException;

use function Weft\timeout;

/**
 * An HTTP/1.1 and HTTP/2 server. Each request is handled in a task of its own. {@see \Weft\App} creates servers and stops them.
 */
final class Server
{
    /** Seconds after the grace period in which cancelled requests are answered. */
    private const ANSWER_TIME = 2.0;

    private readonly HttpServer $native;
    private readonly Requests $requests;
    /** @var list<string> */
    private array $addresses = [];
    private bool $stopped = false;
    private bool $isCarrier = false;
    /** @var list<\Closure(float): void> cancel the calls of gRPC servers on its connections */
    private array $carried = [];

    /**
     * @param Router|\Closure(Request): Response $handler
     * @param Limits|null $limits of connections and requests; null has the defaults of {@see Limits}
     * @param LoggerInterface|null $logger logs failed handlers; by default to stderr
     * @param bool $debug error pages show the exception and its trace
     * @param bool $cancelOnDisconnect cancels the task of a request when its client disconnects
     * @param TrustedProxies|null $proxies in front of the server; null believes none
     */
    public function __construct(
        Router|\Closure $handler,
        ?Limits $limits = null,
        ?LoggerInterface $logger = null,
        bool $debug = false,
        bool $cancelOnDisconnect = true,
        ?TrustedProxies $proxies = null,
    ) {
        $this->native = HttpServer::open(
            ($limits ?? new Limits())->native(),
            $proxies === null ? [] : $proxies->addresses,
            ($proxies === null ? ForwardedFields::None : $proxies->fields)->value,
            $proxies !== null && $proxies->proxyProtocol,
        );
        [$router, $handler] = $handler instanceof Router ? [$handler, $handler->handler()] : [null, $handler];
        $this->requests = new Requests($this->native, $handler, GuardedLogger::around($logger), $debug, $cancelOnDisconnect, $router);
    }

    /**
     * Starts to accept connections; they are served once `run()` is.
     *
     * @param string $address `0.0.0.0:8080`, `[::1]:8080`, `localhost:0` or `unix:/path/to/socket`; port 0 selects a free port
     * @param bool $sharePort lets other processes listen on the same port (SO_REUSEPORT); the kernel distributes the connections
     *
     * @return string the address with the real port
     *
     * @throws InvalidAddressError
     * @throws ListenException
     * @throws TlsException a certificate cannot be used
     */
    public function listen(string $address, bool $sharePort = false, ?Tls $tls = null): string
    {
        return $this->addresses[] = $this->native->listen(
            $address,
            $sharePort,
            $tls === null ? [] : \array_map(static fn(Certificate $one) => [$one->certFile, $one->keyFile], $tls->certificates),
            $tls?->clientCaFile,
            $tls !== null && $tls->requireClientCertificate,
        );
    }

    /**
     * Reads all certificate files again. New connections use the new certificates, open connections continue.
     *
     * @throws TlsException a file cannot be used; the old certificates stay in use
     */
    public function reloadCertificates(): void
    {
        $this->native->reloadCertificates();
    }

    /**
     * Passes gRPC calls on its connections to a gRPC server.
     *
     * @internal
     *
     * @param bool $isExclusive other requests are answered 415 without calling the handler
     * @param \Closure(float): void $cancel called at the end of the grace period, with its seconds
     */
    public function carry(GrpcServer $calls, bool $isExclusive, \Closure $cancel): void
    {
        $this->carried[] = $cancel;
        $this->isCarrier = $isExclusive;
        $calls->attach($this->native, $isExclusive);
    }

    /** @return list<string> the addresses it listens on, with real ports */
    public function addresses(): array
    {
        return $this->addresses;
    }

    /** Serves until `stop()`. Must be called inside `Weft\run()`. */
    public function run(): void
    {
        if (Scheduler::$current === null) {
            throw new \Error('Weft\Http\Server::run() starts a task per request: call it inside Weft\run(), or use Weft\App');
        }
        $this->requests->serve(Scheduler::$current, $this->isCarrier);
    }

    /**
     * Stops gracefully: accepts no more connections, completes the requests in flight, and makes `run()` return. Waits until the last
     * connection is closed and the last handler has ended, also one whose client has left, at most `$grace` seconds; then the remaining
     * requests are cancelled, and answered 503 unless their handlers answer otherwise. Two seconds later the connections that are left are
     * closed.
     */
    public function stop(float $grace = 30.0): void
    {
        if ($this->stopped) {
            // Another call stops the server, with its own grace period.
            $this->drain();

            return;
        }
        $this->stopped = true;
        $this->native->stop();
        try {
            timeout($grace, $this->drain(...));
        } catch (TimeoutException) {
            $this->cancel($grace);
        }
        $this->requests->end();
    }

    /** Waits for the last connection and the last handler: one that runs on without its client, or after its response, has no connection. */
    #[WaitsFor('requests that are still running')]
    private function drain(): void
    {
        Scheduler::await($this->native->drained());
        $this->requests->drain();
    }

    private function cancel(float $grace): void
    {
        $this->requests->cancelAfterGrace($grace);
        foreach ($this->carried as $cancel) {
            $cancel($grace);
        }
        try {
            timeout(self::ANSWER_TIME, $this->drain(...));
        } catch (TimeoutException) {
            // A handler that ignores its cancellation, or a client that does not read its answer.
            $this->native->abort();
        }
    }

    /**
     * @internal
     *
     * @return array<int, array{?string, bool, int, int, int, ?float}> as the extension has it
     */
    public function peers(): array
    {
        return $this->native->peers();
    }

    public function connections(): int
    {
        return $this->native->connections();
    }

    public function inFlight(): int
    {
        return $this->native->inFlight();
    }
}
