<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use function Weft\delay;

/** Three nodes of RabbitMQ and a PostgreSQL behind a proxy. */
final class ClusterGround implements Ground
{
    private readonly Server $postgres;
    private readonly string $url;
    private int $killed = 0;

    public function __construct(private readonly string $root, private readonly string $directory, private readonly string $log)
    {
        $this->cluster('purge');
        $this->cluster('up');
        $this->url = trim((string) file_get_contents("{$directory}/cluster/url"));
        $this->postgres = new Server($root, $directory, $log, 'postgres', 'DATABASE_URL');
    }

    public function broker(): string
    {
        return $this->url;
    }

    public function database(): string
    {
        return $this->postgres->url();
    }

    public function directDatabase(): string
    {
        return $this->postgres->directUrl();
    }

    public function faults(): array
    {
        return [
            'node_kill' => $this->kill(...),
            'database_restart' => fn (): string => $this->postgres->restart(1.0),
            'database_cut' => fn (): string => $this->postgres->cut(),
        ];
    }

    public function close(): void
    {
        $this->cluster('purge');
        $this->postgres->close();
    }

    /** One node after the other, never two at a time: two of three have to go on. */
    private function kill(): string
    {
        $node = (string) (1 + $this->killed++ % 3);
        $this->cluster('kill', $node);
        delay(3.0);
        $this->cluster('start', $node);

        return "node {$node} killed and started";
    }

    private function cluster(string ...$arguments): void
    {
        Command::run(["{$this->root}/scripts/cluster", ...$arguments], ['WEFT_VAR' => $this->directory], $this->log);
    }
}
