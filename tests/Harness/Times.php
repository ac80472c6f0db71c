<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** How long files and programs took: of the last run here, or as the repository has it for a first run. */
final class Times
{
    /** @var array<string, float> */
    private array $seconds = [];

    public function __construct(private readonly string $file)
    {
        foreach ([__DIR__ . '/times.json', $file] as $source) {
            $this->seconds = (\json_decode((string) @\file_get_contents($source), true) ?: []) + $this->seconds;
        }
    }

    public function of(string $name, float $default): float
    {
        return $this->seconds[$name] ?? $default;
    }

    /** @param array<string, float> $seconds of files that this run had */
    public function save(array $seconds): void
    {
        $all = \array_map(static fn (float $one): float => \round($one, 1), $seconds + $this->seconds);
        \ksort($all);
        \file_put_contents($this->file, \json_encode($all, \JSON_PRETTY_PRINT | \JSON_UNESCAPED_SLASHES) . "\n");
    }
}
