<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * A line of a crontab in a time zone, with Debian's cron for a model, see its crontab(5) and cron(8).
 *
 * A rule at fixed times (neither its minutes nor its hours begin with `*`) is due once at each of them: right after a change of the
 * clocks that leaves the time out, and the first time where one comes twice. Other rules are due at each minute that fits.
 *
 * @internal
 */
final class Cron
{
    /** Seconds that no rule lets pass without a time: 40 years may lie between two 29 February of one weekday. */
    private const LONGEST = 41 * 366 * 86_400;

    private const RULE_BYTES = 200;

    private readonly CronFields $fields;
    private readonly LocalTime $local;

    /** The rule and its zone, the same for all that write it the same. */
    public readonly string $rule;

    /** @throws \ValueError when it is no such line, or one that never comes */
    public function __construct(
        string $expression,
        \DateTimeZone $zone,
    ) {
        $this->fields = CronFields::of($expression);
        $this->local = new LocalTime($zone);
        // The column of a schedule's rule takes no more.
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

    /** Of the days that fit the first time that is later. What is on the wall on a day is at most a day away from its midnight in UTC. */
    private function fixedAfter(int $time): ?int
    {
        $end = $time + self::LONGEST;
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

    /** By the seconds that pass: by the clock on the wall the hour that comes twice would be passed over. */
    private function fittingAfter(int $time): ?int
    {
        $end = $time + self::LONGEST;
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

    /** So many seconds later, but not past a change of the clocks: then as late as that is. */
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
