<?php

declare(strict_types=1);

namespace Weft\Bench\Scale;

/** The varied quantity and the measured one. */
enum Curve: string
{
    case Concurrency = 'concurrency';
    case PoolSize = 'pool-size';
    case Backlog = 'backlog';
    case Http = 'http';
    case Grpc = 'grpc';
    case Tasks = 'tasks';

    public function title(): string
    {
        return match ($this) {
            self::Concurrency => 'The bus: commands per second against concurrency',
            self::PoolSize => 'The bus: commands per second against connections to PostgreSQL',
            self::Backlog => 'The bus: cost per message against the length of the queue',
            self::Http => 'HTTP: requests per second against connections and workers',
            self::Grpc => 'gRPC: calls per second against connections and workers',
            self::Tasks => 'The runtime: memory against waiting tasks',
        };
    }

    /** @return array{string, string} of the two axes */
    public function labels(): array
    {
        return match ($this) {
            self::Concurrency => ['handlers at a time', 'commands per second'],
            self::PoolSize => ['connections', 'commands per second'],
            self::Backlog => ['commands queued', 'µs for a command and its event'],
            self::Http => ['connections', 'requests per second'],
            self::Grpc => ['connections', 'calls per second'],
            self::Tasks => ['waiting tasks', 'MiB'],
        };
    }

    /** The unit of the second axis. */
    public function lessIsBetter(): bool
    {
        return $this === self::Backlog || $this === self::Tasks;
    }

    /** @return non-empty-list<int> */
    public function values(bool $short): array
    {
        return match ($this) {
            self::Concurrency => $short ? [1, 10, 100] : [1, 2, 5, 10, 20, 50, 100, 200, 500],
            self::PoolSize => $short ? [1, 8, 32] : [1, 2, 4, 8, 16, 32, 64],
            self::Backlog => $short ? [3_000, 10_000] : [10_000, 30_000, 100_000, 300_000, 1_000_000],
            self::Http, self::Grpc => $short ? [1, 64, 1_000] : [1, 4, 16, 64, 256, 1_000],
            self::Tasks => $short ? [1, 1_000, 10_000] : [1, 10, 100, 1_000, 10_000, 100_000],
        };
    }

    /** A queue of a million messages is worked off once. */
    public function rounds(int $rounds): int
    {
        return $this === self::Backlog ? 1 : $rounds;
    }
}
