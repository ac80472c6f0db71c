<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Cores;
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

    /**
     * @param string $system unique; the name for --only and in the results
     * @param list<string> $command program and arguments; it listens on the port in the variable PORT
     * @param list<string> $files must exist before it can start
     */
    public function __construct(public readonly string $system, private readonly array $command, private readonly array $files)
    {
    }

    /**
     * @param string $bench the directory bench/grpc
     * @param string $out the directory bench/out
     * @param string $extension path of libweft.so
     *
     * @return list<self> in the order of the first round
     */
    public static function all(string $bench, string $out, string $extension): array
    {
        $node = "$bench/peers/node";

        return [
            self::weft($bench, $extension),
            new self('weft-google-protobuf', ...self::program($bench, $extension, '--messages=google-protobuf')),
            new self('go', ["$out/grpc-go"], []),
            new self('tonic', ["$out/grpc-tonic/release/tonic-peer"], []),
            new self('node', ['node', "$node/server.js"], []),
        ];
    }

    /** Weft's server with its own messages, and more arguments. */
    public static function weft(string $bench, string $extension, string ...$arguments): self
    {
        return new self('weft', ...self::program($bench, $extension, '--messages=weft', ...$arguments));
    }

    /** @return array{list<string>, list<string>} command and files */
    private static function program(string $bench, string $extension, string ...$arguments): array
    {
        $program = "$bench/weft/app.php";

        return [[PHP_BINARY, '-d', 'opcache.enable_cli=1', '-d', "extension=$extension", $program, ...$arguments], [$extension, $program]];
    }

    /**
     * The running server, on the first core; started when it is not.
     *
     * @param string $logs directory; each start has a log of its own
     *
     * @throws BenchmarkException when it does not start
     */
    public function server(string $logs): Server
    {
        if ($this->unavailable !== null) {
            throw new BenchmarkException($this->unavailable);
        }
        if ($this->server === null || !$this->server->isRunning()) {
            $this->requireFiles();
            $this->log = sprintf('%s/%s-%d.log', $logs, $this->system, ++$this->starts);
            $this->port = Port::free();
            $environment = ['PORT' => (string) $this->port, 'GOMAXPROCS' => '1', 'NODE_ENV' => 'production'];
            $this->server = Server::start([...Cores::server(), ...$this->command], $environment, $this->log, $this->port);
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

    private function requireFiles(): void
    {
        foreach ($this->files as $file) {
            is_file($file) || throw new BenchmarkException("{$this->system} needs $file; build it, or name the others with --only");
        }
    }
}
