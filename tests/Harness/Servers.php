<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** One set of RabbitMQ, PostgreSQL and MariaDB or MySQL, run by `scripts/services`. */
final class Servers
{
    private const PIDS = ['RabbitMQ' => 'RABBITMQ_PID', 'PostgreSQL' => 'POSTGRES_PID', 'MariaDB or MySQL' => 'WEFT_MYSQL_PID'];

    /** @var array<string, int> by the name of the server */
    private array $pids = [];

    /** @param string $file the environment that `scripts/services` writes */
    public function __construct(private readonly string $file)
    {
    }

    /**
     * Names the servers whose process is gone. It looks at `/proc` only, so it costs nothing to call it before every test.
     *
     * @return list<string>
     */
    public function down(): array
    {
        if ($this->gone() !== []) {
            // A test may have started one again, as another process.
            $this->pids = $this->read();
        }

        return $this->gone();
    }

    /** Starts those that are down; blocks until they answer. */
    public function start(): void
    {
        $script = $this->environment()['WEFT_SERVICES'] ?? throw new \RuntimeException("{$this->file} names no WEFT_SERVICES");
        \exec("$script up 2>&1 </dev/null", $output, $code);
        $code === 0 || throw new \RuntimeException("scripts/services up ended with exit code $code: " . \implode("\n", $output));
        $this->pids = $this->read();
    }

    /** @return array<string, string> */
    public function environment(): array
    {
        \preg_match_all("/^export (\\w+)='(.*)'$/m", (string) @\file_get_contents($this->file), $lines, \PREG_SET_ORDER);
        $environment = [];
        foreach ($lines as [, $name, $value]) {
            $environment[$name] = \str_replace("'\\''", "'", $value);
        }

        return $environment;
    }

    /** @return list<string> */
    private function gone(): array
    {
        $this->pids = $this->pids ?: $this->read();

        return \array_keys(\array_filter($this->pids, static fn (int $pid): bool => !self::lives($pid)));
    }

    private static function lives(int $pid): bool
    {
        $state = $pid > 0 ? @\file_get_contents("/proc/$pid/stat") : false;

        // A process that was killed and has not been waited for is still there, as a zombie.
        return $state !== false && !\str_contains($state, ') Z ');
    }

    /** @return array<string, int> */
    private function read(): array
    {
        $environment = $this->environment();

        return $environment === [] ? [] : \array_map(static fn (string $name): int => (int) ($environment[$name] ?? 0), self::PIDS);
    }
}
