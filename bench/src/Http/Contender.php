<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Port;
use Weft\Bench\Server;
use Weft\Bench\TimedOut;

/** One server in the comparison: how to start it, and it while it runs. */
final class Contender
{
    /** Why it cannot run at all; each of its runs then counts as failed with this reason. */
    public ?string $unavailable = null;

    private const MOST_HANGS = 2;

    private ?Server $server = null;
    private int $hangs = 0;
    private int $starts = 0;
    private string $log = '';
    private int $port = 0;
    private int $http2Port = 0;

    /**
     * @param string $system unique; the name for --only and in the results
     * @param list<string> $command program and arguments; `{port}` is replaced
     * @param bool $http2 whether it serves HTTP/2 in clear text
     * @param bool $samePort whether it does so on the port of HTTP/1.1
     * @param bool $keepsAlive whether it keeps a connection after an answer
     * @param list<string> $files must exist before it can start
     * @param list<Workload>|null $workloads those that it takes part in; null means all
     * @param bool $isFloor whether it shows what the kernel alone costs a server; it runs only where it is named
     */
    public function __construct(
        public readonly string $system,
        private readonly array $command,
        private readonly bool $http2,
        private readonly bool $samePort,
        public readonly bool $keepsAlive,
        public readonly array $files,
        private readonly ?array $workloads = null,
        public readonly bool $isFloor = false,
    ) {
    }

    public function serves(Protocol $protocol, Workload $workload): bool
    {
        return ($protocol === Protocol::Http1 || $this->http2) && ($this->workloads === null || in_array($workload, $this->workloads, true));
    }

    /**
     * The running server; started when it is not.
     *
     * @param array<string, string> $environment
     * @param list<string> $pin command that is put before its own
     * @param string $logs directory; each start has a log of its own
     *
     * @throws BenchmarkException when it does not start
     */
    public function server(array $environment, array $pin, string $logs): Server
    {
        if ($this->unavailable !== null) {
            throw new BenchmarkException($this->unavailable);
        }
        if ($this->server === null || !$this->server->isRunning()) {
            $this->log = sprintf('%s/%s-%d.log', $logs, $this->system, ++$this->starts);
            $this->port = Port::free();
            $this->http2Port = $this->samePort ? $this->port : Port::free();
            $command = str_replace('{port}', (string) $this->port, $this->command);
            $ports = ['PORT' => (string) $this->port, 'H2_PORT' => (string) $this->http2Port];
            $this->server = Server::start([...$pin, ...$command], $ports + $environment, $this->log, $this->port);
        }

        return $this->server;
    }

    /** What its last start printed; empty before the first. */
    public function log(): string
    {
        return $this->log;
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

    /** It is ended, to be started anew for its next turn; the second time it has had its turns: each costs as long again. */
    public function hung(TimedOut $failure): void
    {
        $this->stop();
        $this->unavailable = ++$this->hangs < self::MOST_HANGS ? null : "{$failure->getMessage()}; it was not started again";
    }

    public function stop(): void
    {
        $this->server?->stop();
        $this->server = null;
    }
}
