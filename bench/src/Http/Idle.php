<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

/** What many idle connections cost one contender, as it stands in the results file. */
final class Idle
{
    /** @param array{system: string, connections: int, kib_per_connection: float|null, failed?: string, log?: string} $fields */
    private function __construct(private readonly array $fields)
    {
    }

    /**
     * @param float $before MiB of the server's processes without the connections
     * @param float $after the same with them
     */
    public static function measured(string $system, int $connections, float $before, float $after): self
    {
        $kib = round(($after - $before) * 1024 / $connections, 2);

        return new self(['system' => $system, 'connections' => $connections, 'kib_per_connection' => $kib]);
    }

    public static function failed(string $system, int $connections, string $reason, string $log): self
    {
        return new self(['system' => $system, 'connections' => $connections, 'kib_per_connection' => null, 'failed' => $reason, 'log' => $log]);
    }

    /** @param array<string, mixed> $fields */
    public static function fromArray(array $fields): self
    {
        return new self($fields);
    }

    /** @return array<string, mixed> */
    public function toArray(): array
    {
        return $this->fields;
    }

    public function failure(): ?string
    {
        return $this->fields['failed'] ?? null;
    }

    /** What came out, in a few words. */
    public function outcome(): string
    {
        return $this->failure() !== null ? "not measured: {$this->failure()}" : "{$this->row()[2]} KiB each";
    }

    /** @return list<string> */
    public function row(): array
    {
        $kib = $this->fields['kib_per_connection'];

        return [$this->fields['system'], number_format($this->fields['connections']), $kib === null ? '–' : number_format($kib, 1)];
    }
}
