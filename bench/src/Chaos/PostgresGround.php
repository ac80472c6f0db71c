<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

/** A PostgreSQL that is broker and database, behind a proxy. */
final class PostgresGround implements Ground
{
    private readonly Server $server;

    public function __construct(string $root, string $directory, string $log)
    {
        $this->server = new Server($root, $directory, $log, 'postgres', 'DATABASE_URL');
    }

    public function broker(): string
    {
        return $this->server->url();
    }

    public function database(): string
    {
        return $this->server->url();
    }

    public function directDatabase(): string
    {
        return $this->server->directUrl();
    }

    public function faults(): array
    {
        return [
            'database_restart' => fn (): string => $this->server->restart(1.0),
            'database_cut' => fn (): string => $this->server->cut(),
            'database_slow' => fn (): string => $this->server->slow(0.02, 1.5),
        ];
    }

    public function close(): void
    {
        $this->server->close();
    }
}
