<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Saga;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Saga\SagaRecord;
use Weft\Bus\Saga\SagaStatus;

/**
 * The row of a saga while a message is handled. Times are milliseconds since 1970.
 *
 * @internal
 */
final class SagaRow
{
    /** @param int $version 0 before it is stored */
    public function __construct(
        public readonly string $saga,
        public readonly string $id,
        public int $version,
        public SagaStatus $status,
        public int $schema,
        public string $state,
        public readonly int $startedAt,
        public ?int $expiresAt,
        public ?int $endedAt = null,
        public string $reason = '',
    ) {}

    /** @param float|null $expires seconds from now */
    public static function start(string $saga, string $id, int $schema, ?float $expires): self
    {
        return new self($saga, $id, 0, SagaStatus::Active, $schema, '{}', self::now(), $expires === null ? null : Clock::milliseconds(Clock::now() + $expires));
    }

    /** @param array<string, mixed> $row */
    public static function of(array $row): self
    {
        return new self(
            $row['saga'],
            $row['id'],
            $row['version'],
            SagaStatus::from($row['status']),
            $row['schema_version'],
            $row['state'],
            $row['started_at'],
            $row['expires_at'],
            $row['ended_at'],
            $row['reason'],
        );
    }

    /** A saga expires by its time alone, without a message. */
    public function status(): SagaStatus
    {
        return $this->status->isOpen() && $this->expiresAt !== null && $this->expiresAt <= self::now() ? SagaStatus::Expired : $this->status;
    }

    public function end(SagaStatus $status, string $reason): void
    {
        $this->status = $status;
        $this->endedAt = self::now();
        $this->reason = $reason;
    }

    /** @param float|null $expires seconds from now; null or INF for never */
    public function reopen(?float $expires, string $reason): void
    {
        $this->status = SagaStatus::Reopened;
        $this->endedAt = null;
        $this->reason = $reason;
        $this->expiresAt = $expires === null || $expires === \INF ? null : Clock::milliseconds(Clock::now() + $expires);
    }

    public function record(): SagaRecord
    {
        return new SagaRecord(
            $this->saga,
            $this->id,
            $this->status(),
            $this->version,
            $this->state,
            self::time($this->startedAt),
            $this->expiresAt === null ? null : self::time($this->expiresAt),
            match (true) {
                $this->endedAt !== null => self::time($this->endedAt),
                $this->status() === SagaStatus::Expired => self::time((int) $this->expiresAt),
                default => null,
            },
            $this->reason,
        );
    }

    public static function time(int $milliseconds): \DateTimeImmutable
    {
        $seconds = (int) \floor($milliseconds / 1000);

        return new \DateTimeImmutable("@{$seconds} +" . ($milliseconds - 1000 * $seconds) . ' msec');
    }

    private static function now(): int
    {
        return (int) (Clock::now() * 1000);
    }
}
