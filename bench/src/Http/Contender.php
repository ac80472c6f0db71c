<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

use Weft\Bench\Port;
use Weft\Bench\Server;

/** One server in the comparison: how to start it, and it while it runs. */
final class Contender
{
    private ?Server $server = null;
    private int $port = 0;
    private int $http2Port = 0;

    /**
     * @param string $system unique, what --only takes and what stands in the results
     * @param list<string> $command program and arguments; `{port}` is replaced
     * @param bool $http2 whether it serves HTTP/2 in clear text
     * @param bool $samePort whether it does so on the port of HTTP/1.1
     * @param bool $keepsAlive whether it keeps a connection after an answer
     * @param list<string> $files must exist before it can start
     */
    public function __construct(
        public readonly string $system,
        private readonly array $command,
        private readonly bool $http2,
        private readonly bool $samePort,
        public readonly bool $keepsAlive,
        public readonly array $files,
    ) {
    }

    public function serves(Protocol $protocol): bool
    {
        return $protocol === Protocol::Http1 || $this->http2;
    }

    /**
     * The running server; started when it is not.
     *
     * @param array<string, string> $environment
     * @param list<string> $pin command that is put before its own
     */
    public function server(array $environment, array $pin, string $log): Server
    {
        if ($this->server === null || !$this->server->isRunning()) {
            $this->port = Port::free();
            $this->http2Port = $this->samePort ? $this->port : Port::free();
            $command = str_replace('{port}', (string) $this->port, $this->command);
            $ports = ['PORT' => (string) $this->port, 'H2_PORT' => (string) $this->http2Port];
            $this->server = Server::start([...$pin, ...$command], $ports + $environment, $log, $this->port);
        }

        return $this->server;
    }

    public function port(): int
    {
        return $this->port;
    }

    public function url(Protocol $protocol, Workload $workload): string
    {
        $port = $protocol === Protocol::Http1 ? $this->port : $this->http2Port;

        return "http://127.0.0.1:$port{$workload->path()}";
    }

    public function stop(): void
    {
        $this->server?->stop();
        $this->server = null;
    }
}
