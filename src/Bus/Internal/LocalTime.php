<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * What the clock on a wall of a time zone shows, as seconds since 1970 as if it were UTC.
 *
 * @internal
 */
final class LocalTime
{
    /** Seconds by which no zone is away from UTC, and a bit. */
    private const FARTHEST = 93_600;

    /** A larger change of the clocks, in seconds, is a correction, as in cron(8): times that it leaves out are gone. */
    private const LARGEST_CHANGE = 10_800;

    /** Seconds of which the changes are known at a time. */
    private const SPAN = 400 * 86_400;

    private int $from = 0;
    private int $to = 0;

    /** @var non-empty-list<array{int, int}> since when which offset holds; the first one before everything that is asked for */
    private array $offsets = [[0, 0]];

    public function __construct(private readonly \DateTimeZone $zone) {}

    /** Seconds that the wall is ahead of UTC. */
    public function offset(int $time): int
    {
        $this->learn($time, $time);
        $offset = $this->offsets[0][1];
        foreach ($this->offsets as [$since, $next]) {
            if ($since > $time) {
                break;
            }
            $offset = $next;
        }

        return $offset;
    }

    /** The first change of the clocks after a time, up to another one; null when there is none. */
    public function changeWithin(int $after, int $until): ?int
    {
        $this->learn($after, $until);
        foreach (\array_slice($this->offsets, 1) as [$since]) {
            if ($since > $after && $since <= $until) {
                return $since;
            }
        }

        return null;
    }

    /**
     * When the wall shows it: the first time where that is twice, and at the change that leaves it out where that is never. Null for a
     * time that a correction leaves out.
     */
    public function once(int $wall): ?int
    {
        $this->learn($wall - self::FARTHEST, $wall + self::FARTHEST);
        $last = \count($this->offsets) - 1;
        foreach ($this->offsets as $index => [$since, $offset]) {
            $at = $wall - $offset;
            $end = $index === $last ? \PHP_INT_MAX : $this->offsets[$index + 1][0];
            if ($at < $end && ($index === 0 || $at >= $since)) {
                return $at;
            }
            if ($index > 0 && $at < $since) {
                // The wall went from before it to after it.
                return $offset - $this->offsets[$index - 1][1] <= self::LARGEST_CHANGE ? $since : null;
            }
        }

        return null;
    }

    private function learn(int $from, int $to): void
    {
        if ($from >= $this->from && $to <= $this->to) {
            return;
        }
        $this->from = $from - 3 * self::FARTHEST;
        $this->to = $to + self::SPAN;
        // Zones that are an offset have no list of changes.
        $changes = $this->zone->getTransitions($this->from, $this->to) ?: [['ts' => $this->from, 'offset' => $this->zone->getOffset(new \DateTimeImmutable('@0'))]];
        $this->offsets = \array_map(static fn(array $change): array => [$change['ts'], $change['offset']], $changes);
    }
}
