<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * A crontab rule in a time zone, after Debian's cron, see its crontab(5) and cron(8).
 *
 * @internal
 */
final class Cron
{
    /** Seconds within which every rule fires: 40 years may lie between two 29 February on one weekday. */
    private const MAX_INTERVAL = 41 * 366 * 86_400;

    private const RULE_BYTES = 200;

    private readonly CronFields $fields;
    private readonly LocalTime $local;

    /** The rule and its zone, normalised. */
    public readonly string $rule;

    /** @throws \ValueError when it is no such line, or one that never comes */
    public function __construct(
        string $expression,
        \DateTimeZone $zone,
    ) {
        $this->fields = CronFields::of($expression);
        $this->local = new LocalTime($zone);
        // The length of the column for rules.
        $this->rule = Identifier::fit("{$this->fields->text} {$zone->getName()}", self::RULE_BYTES);
        $this->after(0);
    }

    /**
     * The first time after another one, both in seconds since 1970.
     *
     * @throws \ValueError when there is none, as for 30 February
     */
    public function after(int $time): int
    {
        $next = $this->fields->isAtFixedTimes ? $this->fixedAfter($time) : $this->fittingAfter($time);

        return $next ?? throw new \ValueError("The schedule \"{$this->rule}\" never fires");
    }

    /** The first later time on the matching days. A local day is at most one day away from the UTC day. */
    private function fixedAfter(int $time): ?int
    {
        $end = $time + self::MAX_INTERVAL;
        for ($midnight = \intdiv($time, 86_400) * 86_400 - 86_400; $midnight <= $end; $midnight += 86_400) {
            if (!$this->fields->isDay($midnight)) {
                continue;
            }
            foreach ($this->fields->hours as $hour) {
                foreach ($this->fields->minutes as $minute) {
                    $at = $this->local->once($midnight + 3_600 * $hour + 60 * $minute);
                    if ($at !== null && $at > $time) {
                        return $at;
                    }
                }
            }
        }

        return null;
    }

    /** In elapsed seconds: by local time a repeated hour would be skipped. */
    private function fittingAfter(int $time): ?int
    {
        $end = $time + self::MAX_INTERVAL;
        $moment = $time + 60 - ($time + $this->offset($time)) % 60;
        while ($moment <= $end) {
            $wall = $moment + $this->offset($moment);
            if (!$this->fields->isDay($wall)) {
                $moment = $this->skip($moment, 86_400 - $wall % 86_400);
            } elseif (!\in_array(\intdiv($wall % 86_400, 3_600), $this->fields->hours, true)) {
                $moment = $this->skip($moment, 3_600 - $wall % 3_600);
            } elseif (!\in_array(\intdiv($wall % 3_600, 60), $this->fields->minutes, true)) {
                $moment += 60;
            } else {
                return $moment;
            }
        }

        return null;
    }

    /** The given seconds later, but not beyond a change of the clocks. */
    private function skip(int $moment, int $seconds): int
    {
        $change = $this->local->changeWithin($moment, $moment + $seconds);

        return $change ?? $moment + $seconds;
    }

    private function offset(int $time): int
    {
        return $this->local->offset($time);
    }
}
