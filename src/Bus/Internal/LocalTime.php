<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * The local time of a time zone, as seconds since 1970 as if it were UTC.
 *
 * @internal
 */
final class LocalTime
{
    /** Seconds; no zone is further from UTC. */
    private const MAX_UTC_OFFSET = 93_600;

    /** Seconds; a larger change of the clocks is a correction, as in cron(8), and its skipped times are lost. */
    private const MAX_CLOCK_CHANGE = 10_800;

    /** Seconds for which changes are loaded at a time. */
    private const LOAD_AHEAD = 400 * 86_400;

    private int $from = 0;
    private int $to = 0;

    /** @var non-empty-list<array{int, int}> since when which offset holds; the first one before everything that is asked for */
    private array $offsets = [[0, 0]];

    public function __construct(private readonly \DateTimeZone $zone) {}

    /** Seconds that local time is ahead of UTC. */
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

    /** The first change of the clocks between two times; null when there is none. */
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

    /** When local time shows it: the first time if it is repeated, and at the change if it is skipped. */
    public function once(int $wall): ?int
    {
        $this->learn($wall - self::MAX_UTC_OFFSET, $wall + self::MAX_UTC_OFFSET);
        $last = \count($this->offsets) - 1;
        foreach ($this->offsets as $index => [$since, $offset]) {
            $at = $wall - $offset;
            $end = $index === $last ? \PHP_INT_MAX : $this->offsets[$index + 1][0];
            if ($at < $end && ($index === 0 || $at >= $since)) {
                return $at;
            }
            if ($index > 0 && $at < $since) {
                // Local time jumped over it.
                return $offset - $this->offsets[$index - 1][1] <= self::MAX_CLOCK_CHANGE ? $since : null;
            }
        }

        return null;
    }

    private function learn(int $from, int $to): void
    {
        if ($from >= $this->from && $to <= $this->to) {
            return;
        }
        $this->from = $from - 3 * self::MAX_UTC_OFFSET;
        $this->to = $to + self::LOAD_AHEAD;
        // Zones that are an offset have no transitions.
        $changes = $this->zone->getTransitions($this->from, $this->to) ?: [['ts' => $this->from, 'offset' => $this->zone->getOffset(new \DateTimeImmutable('@0'))]];
        $this->offsets = \array_map(static fn(array $change): array => [$change['ts'], $change['offset']], $changes);
    }
}
