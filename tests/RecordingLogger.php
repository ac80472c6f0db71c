<?php

declare(strict_types=1);

namespace Weft\Tests;

use Psr\Log\AbstractLogger;

use function Weft\delay;

/** Keeps what is logged. */
final class RecordingLogger extends AbstractLogger
{
    /** @var list<array{level: string, message: string, context: array<mixed>}> messages with their placeholders */
    public array $records = [];

    /** @var list<string> `level text`, placeholders filled */
    public array $lines = [];

    /** @param array<mixed> $context */
    public function log($level, $message, array $context = []): void
    {
        $this->records[] = ['level' => (string) $level, 'message' => (string) $message, 'context' => $context];
        $texts = \array_filter($context, \is_scalar(...));
        $names = \array_map(static fn(string $name): string => "{{$name}}", \array_keys($texts));
        $this->lines[] = "{$level} " . \str_replace($names, \array_map(\strval(...), $texts), (string) $message);
    }

    /** @return list<array{level: string, message: string, context: array<mixed>}> */
    public function of(string $level): array
    {
        return \array_values(\array_filter($this->records, static fn(array $record): bool => $record['level'] === $level));
    }

    /** Whether a line contains the text. */
    public function has(string $text): bool
    {
        return \array_filter($this->lines, static fn(string $line): bool => \str_contains($line, $text)) !== [];
    }

    /** The same of one level, and before placeholders were filled. */
    public function hasRecord(string $level, string $text): bool
    {
        return \array_filter($this->of($level), static fn(array $record): bool => \str_contains($record['message'], $text)) !== [];
    }

    /** Waits for a line that contains the text; the test's deadline bounds it. */
    public function await(string $text): void
    {
        while (!$this->has($text)) {
            delay(0.01);
        }
    }
}
