<?php

declare(strict_types=1);

namespace Weft\Tests;

use Psr\Log\AbstractLogger;

/** Keeps what is logged. */
final class RecordingLogger extends AbstractLogger
{
    /** @var list<array{level: string, message: string, context: array<mixed>}> */
    public array $records = [];

    /** @param array<mixed> $context */
    public function log($level, $message, array $context = []): void
    {
        $this->records[] = ['level' => (string) $level, 'message' => (string) $message, 'context' => $context];
    }

    public function has(string $level, string $text = ''): bool
    {
        foreach ($this->records as $record) {
            if ($record['level'] === $level && \str_contains($record['message'], $text)) {
                return true;
            }
        }

        return false;
    }
}
