<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\Port;

/** nginx, two instances of the example, and PostgreSQL: together within 1.5 processors and 3.0 GB, as the rules want it. */
final class Stack
{
    /** As in examples/rinha/compose.yaml. */
    private const SPLIT = ['postgresql' => [0.65, 1400], 'api-1' => [0.32, 400], 'api-2' => [0.32, 400], 'nginx' => [0.21, 600]];

    /** @var array<string, Part> */
    private array $parts = [];
    private readonly Postgres $postgres;
    private readonly int $port;

    /**
     * @param string $example the directory examples/rinha
     * @param string $out where logs go
     */
    public function __construct(private readonly string $example, private readonly string $out, private readonly string $extension)
    {
        $this->port = Port::free();
    }

    public function start(Inserts $inserts, bool $limited): void
    {
        @mkdir($this->out);
        foreach (self::SPLIT as $name => [$cpus, $memory]) {
            $this->parts[$name] = Part::within($name, $cpus, $memory, $limited);
        }
        $database = Port::free();
        $this->postgres = new Postgres($database, "{$this->example}/postgresql.conf");
        $this->parts['postgresql']->start($this->postgres->command(), [], "{$this->out}/postgresql.log", $database);
        $this->postgres->await();
        $instances = ['api-1' => Port::free(), 'api-2' => Port::free()];
        foreach ($instances as $name => $port) {
            $this->parts[$name]->start($this->api(), $this->environment($inserts, $port), "{$this->out}/$name.log", $port);
        }
        $ports = [9997 => $instances['api-1'], 9998 => $instances['api-2'], 9999 => $this->port];
        $nginx = new Nginx("{$this->example}/nginx.conf", "{$this->out}/nginx", $ports);
        $this->parts['nginx']->start($nginx->command(), [], "{$this->out}/nginx.log", $this->port);
    }

    public function url(): string
    {
        return "http://127.0.0.1:{$this->port}";
    }

    /** False when one of them runs without limits. */
    public function isLimited(): bool
    {
        return array_filter($this->parts, static fn (Part $part): bool => !$part->isLimited()) === [];
    }

    public function beginMeasurement(): void
    {
        array_map(static fn (Part $part) => $part->beginMeasurement(), $this->parts);
    }

    /** @return list<array<string, mixed>> as in the results file */
    public function usage(float $seconds): array
    {
        return array_values(array_map(static fn (Part $part): array => $part->usage($seconds), $this->parts));
    }

    public function people(): int
    {
        return $this->postgres->people();
    }

    /** That stored the people. */
    public function transactions(): int
    {
        return $this->postgres->transactions();
    }

    /** @return array<string, string> */
    public function settings(): array
    {
        return $this->postgres->settings();
    }

    public function stop(): void
    {
        array_map(static fn (Part $part) => $part->stop(), array_reverse($this->parts));
        isset($this->postgres) && $this->postgres->remove();
    }

    /** @return list<string> */
    private function api(): array
    {
        return [PHP_BINARY, '-d', 'opcache.enable_cli=1', '-d', "extension={$this->extension}", "{$this->example}/app.php"];
    }

    /** @return array<string, string> */
    private function environment(Inserts $inserts, int $port): array
    {
        return ['PORT' => (string) $port, 'DATABASE_URL' => $this->postgres->url(), 'INSERTS' => $inserts->value];
    }
}
