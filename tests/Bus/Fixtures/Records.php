<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use Psr\Log\AbstractLogger;

use function Weft\delay;

/** A log in memory. */
final class Records extends AbstractLogger
{
    /** @var list<string> `level text`, placeholders filled */
    public array $lines = [];

    public function log($level, $message, array $context = []): void
    {
        $texts = \array_filter($context, \is_scalar(...));
        $names = \array_map(static fn(string $name): string => "{{$name}}", \array_keys($texts));
        $this->lines[] = "{$level} " . \str_replace($names, \array_map(\strval(...), $texts), (string) $message);
    }

    /** Waits for a line that contains the text; the test's deadline bounds it. */
    public function await(string $text): void
    {
        while (!$this->has($text)) {
            delay(0.01);
        }
    }

    public function has(string $text): bool
    {
        return \array_filter($this->lines, static fn(string $line): bool => \str_contains($line, $text)) !== [];
    }
}
