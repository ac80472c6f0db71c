<?php

declare(strict_types=1);

namespace Weft\Bench\Clients;

/** One load, and the clients that it is put on. */
enum Workload: string
{
    case Publish = 'publish';
    case Consume = 'consume';
    case Select = 'select';
    case Insert = 'insert';
    case Scan = 'scan';

    /** @return array{string, string} Weft's client and its peer */
    public function contenders(): array
    {
        return $this->isAmqp() ? ['weft-amqp', 'lapin'] : ['weft-postgres', 'tokio-postgres'];
    }

    public function isAmqp(): bool
    {
        return $this === self::Publish || $this === self::Consume;
    }

    /** Concurrent operations: unconfirmed or unacknowledged messages, or tasks. */
    public function window(): int
    {
        return match ($this) {
            self::Publish, self::Consume => 256,
            self::Select => 64,
            self::Insert => 8,
            self::Scan => 1,
        };
    }

    public function operations(bool $short): int
    {
        $operations = match ($this) {
            self::Publish, self::Consume, self::Insert => 40_000,
            self::Select => 64_000,
            self::Scan => 400_000,
        };

        return $short ? intdiv($operations, 5) : $operations;
    }
}
