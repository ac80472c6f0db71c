<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use function Weft\delay;

/** Three nodes of RabbitMQ. */
final class Cluster
{
    public readonly string $url;

    private readonly string $var;

    public function __construct()
    {
        $this->var = \sys_get_temp_dir() . '/weft-cluster-' . \bin2hex(\random_bytes(4));
        \mkdir($this->var, 0o755);
        // A fatal error in a test must not leave servers behind.
        \register_shutdown_function($this->remove(...));
        $this->wait($this->start('up'));
        $this->url = \trim((string) \file_get_contents("{$this->var}/cluster/url"));
    }

    /** Ends a node with SIGKILL. */
    public function kill(int $node): void
    {
        $this->wait($this->start('kill', (string) $node));
    }

    /** Starts it again, while other tasks go on. Call it inside `Weft\run()`. */
    public function revive(int $node): void
    {
        $process = $this->start('start', (string) $node);
        while (\proc_get_status($process)['running']) {
            delay(0.02);
        }
        \proc_close($process);
    }

    /** As rabbitmqctl knows it. */
    public function name(int $node): string
    {
        return \trim($this->wait($this->start('name', (string) $node)));
    }

    /** @return string what rabbitmqctl says */
    public function control(string ...$arguments): string
    {
        return $this->wait($this->start('ctl', '-q', ...$arguments));
    }

    public function remove(): void
    {
        if (\is_dir($this->var)) {
            $this->wait($this->start('purge'));
            \array_map(\unlink(...), \glob("{$this->var}/*") ?: []);
            \rmdir($this->var);
        }
    }

    /** @return resource */
    private function start(string ...$command)
    {
        $output = ['file', "{$this->var}/output", 'w'];
        $process = \proc_open([\dirname(__DIR__, 3) . '/scripts/cluster', ...$command], [['file', '/dev/null', 'r'], $output, ['redirect', 1]], $pipes, null, ['WEFT_VAR' => $this->var] + \getenv());
        \assert(\is_resource($process));

        return $process;
    }

    /** @param resource $process */
    private function wait($process): string
    {
        $code = \proc_close($process);
        $output = (string) \file_get_contents("{$this->var}/output");
        if ($code !== 0) {
            throw new \RuntimeException("scripts/cluster ended with {$code}: {$output}");
        }

        return $output;
    }
}
