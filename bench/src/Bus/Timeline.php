<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

/** How many messages the broker had taken, delivered and had acknowledged at moments of a run. */
final class Timeline
{
    /** A sample costs the broker about 4 ms of CPU. */
    private const INTERVAL_SECONDS = 0.2;
    private const MOST_SAMPLES = 100;
    private const LAST_SECONDS = 2.0;

    /** @var list<array{float, int, int, int}> second, published, delivered, acknowledged */
    private array $samples = [];
    private float $interval = self::INTERVAL_SECONDS;
    private float $next = 0.0;

    /** @param Counters|null $counters null without counters: then there are no samples */
    public function __construct(private readonly ?Counters $counters)
    {
    }

    /** @param float $elapsed seconds since the start of the run */
    public function tick(float $elapsed): void
    {
        $counts = $this->counters?->answer();
        if ($counts !== null) {
            $this->samples[] = [$elapsed, ...array_values($counts)];
            $this->thinOut();
        }
        if ($elapsed >= $this->next && $this->counters?->ask()) {
            $this->next = $elapsed + $this->interval;
        }
    }

    /**
     * Takes the last sample and waits for it.
     *
     * @param float $elapsed seconds the run has taken
     */
    public function finish(float $elapsed): void
    {
        $deadline = microtime(true) + self::LAST_SECONDS;
        $this->counters?->close();
        $this->counters?->ask();
        while ($this->counters !== null && microtime(true) < $deadline) {
            $counts = $this->counters->answer();
            if ($counts !== null) {
                $this->samples[] = [$elapsed, ...array_values($counts)];
                break;
            }
            usleep(2_000);
        }
        $this->counters?->close();
    }

    /** @return array{seconds: list<float>, published: list<int>, delivered: list<int>, acknowledged: list<int>}|null since the first sample; null without any */
    public function toArray(): ?array
    {
        if (count($this->samples) < 2) {
            return null;
        }
        $since = fn (int $column): array => array_map(fn (array $sample): int => $sample[$column] - $this->samples[0][$column], $this->samples);

        return [
            'seconds' => array_map(static fn (array $sample): float => round($sample[0], 3), $this->samples),
            'published' => $since(1),
            'delivered' => $since(2),
            'acknowledged' => $since(3),
        ];
    }

    /** A long run is sampled more coarsely, not in a larger file. */
    private function thinOut(): void
    {
        if (count($this->samples) >= self::MOST_SAMPLES) {
            // The first is the baseline, the last is the newest.
            $last = array_key_last($this->samples);
            $stays = static fn (int $i): bool => $i === 0 || ($last - $i) % 2 === 0;
            $this->samples = array_values(array_filter($this->samples, $stays, ARRAY_FILTER_USE_KEY));
            $this->interval *= 2;
        }
    }
}
