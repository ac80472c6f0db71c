<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

/** Three nodes of RabbitMQ. */
final class Cluster
{
    public readonly string $url;

    private readonly ServerScript $nodes;

    public function __construct()
    {
        $this->nodes = new ServerScript('cluster');
        $this->nodes->run('up');
        $this->url = \trim((string) \file_get_contents("{$this->nodes->directory}/cluster/url"));
    }

    /** Ends a node with SIGKILL. */
    public function kill(int $node): void
    {
        $this->nodes->run('kill', (string) $node);
    }

    /** Starts it again, while other tasks go on. Call it inside `Weft\run()`. */
    public function revive(int $node): void
    {
        $this->nodes->runBeside('start', (string) $node);
    }

    /** As rabbitmqctl knows it. */
    public function name(int $node): string
    {
        return \trim($this->nodes->run('name', (string) $node));
    }

    /** @return string what rabbitmqctl says */
    public function control(string ...$arguments): string
    {
        return $this->nodes->run('ctl', '-q', ...$arguments);
    }

    public function remove(): void
    {
        $this->nodes->remove();
    }
}
