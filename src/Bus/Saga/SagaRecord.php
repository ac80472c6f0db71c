<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/** The stored data of one saga. */
final class SagaRecord
{
    /**
     * @param string $saga    its name, see {@see Saga::$name}
     * @param int    $version number of messages that have changed it, from 1
     * @param string $state   its properties, as JSON
     * @param string $reason  why it has ended; may be empty
     */
    public function __construct(
        public readonly string $saga,
        public readonly string $id,
        public readonly SagaStatus $status,
        public readonly int $version,
        public readonly string $state,
        public readonly \DateTimeImmutable $startedAt,
        public readonly ?\DateTimeImmutable $expiresAt,
        public readonly ?\DateTimeImmutable $endedAt,
        public readonly string $reason,
    ) {}
}
