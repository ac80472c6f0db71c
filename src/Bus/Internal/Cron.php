<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * A crontab line's five fields: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday), each `*`, numbers,
 * ranges, lists and steps. As in cron, when both days are given either will do.
 *
 * @internal
 */
final class Cron
{
    /** Seconds that no rule lets pass without a time, leap years and all. */
    public const LONGEST = 8 * 366 * 86_400;

    private const BOUNDS = [[0, 59], [0, 23], [1, 31], [1, 12], [0, 7]];
    private const FIELDS = ['minute', 'hour', 'day of the month', 'month', 'day of the week'];

    /** @var list<array<int, true>> allowed values by field */
    private readonly array $allowed;

    public readonly string $rule;

    /** @throws \ValueError when it is no such line, or one that never comes */
    public function __construct(
        string $expression,
        private readonly \DateTimeZone $zone,
    ) {
        $fields = \preg_split('/\s+/', \trim($expression)) ?: [];
        if (\count($fields) !== 5) {
            throw new \ValueError("A schedule has five fields (minute, hour, day, month, weekday), \"{$expression}\" has " . \count($fields));
        }
        $allowed = [];
        foreach ($fields as $index => $field) {
            $allowed[] = self::parse($field, $index, $expression);
        }
        if (isset($allowed[4][7])) {
            $allowed[4][0] = true;
        }
        $this->allowed = $allowed;
        $this->rule = \implode(' ', $fields) . " {$zone->getName()}";
        $this->after(0);
    }

    /**
     * The first time after another one, both in seconds since 1970. An hour that a change to summer time leaves out is
     * left out; one that comes twice has its times twice.
     *
     * @throws \ValueError when there is none, as for 30 February
     */
    public function after(int $time): int
    {
        $moment = (new \DateTimeImmutable("@{$time}"))->setTimezone($this->zone);
        $moment = self::later($moment, 60 - (int) $moment->format('s'));
        $end = $time + self::LONGEST;
        while ($moment->getTimestamp() <= $end) {
            if (!isset($this->allowed[3][(int) $moment->format('n')])) {
                $moment = $moment->modify('first day of next month')->setTime(0, 0);
            } elseif (!$this->isDay($moment)) {
                $moment = $moment->modify('+1 day')->setTime(0, 0);
            } elseif (!isset($this->allowed[1][(int) $moment->format('G')])) {
                $moment = self::later($moment, 60 * (60 - (int) $moment->format('i')));
            } elseif (!isset($this->allowed[0][(int) $moment->format('i')])) {
                $moment = self::later($moment, 60);
            } else {
                return $moment->getTimestamp();
            }
        }

        throw new \ValueError("The schedule \"{$this->rule}\" never comes");
    }

    /** By the seconds that pass: by the clock on the wall the hour that comes twice would be passed over. */
    private static function later(\DateTimeImmutable $moment, int $seconds): \DateTimeImmutable
    {
        return $moment->setTimestamp($moment->getTimestamp() + $seconds);
    }

    private function isDay(\DateTimeImmutable $moment): bool
    {
        $ofMonth = isset($this->allowed[2][(int) $moment->format('j')]);
        $ofWeek = isset($this->allowed[4][(int) $moment->format('w')]);
        $anyOfMonth = \count($this->allowed[2]) === 31;
        $anyOfWeek = \count(\array_diff_key($this->allowed[4], [7 => true])) === 7;

        return $anyOfMonth || $anyOfWeek ? $ofMonth && $ofWeek : $ofMonth || $ofWeek;
    }

    /** @return array<int, true> */
    private static function parse(string $field, int $index, string $expression): array
    {
        [$least, $most] = self::BOUNDS[$index];
        $values = [];
        foreach (\explode(',', $field) as $part) {
            if (\preg_match('~^(?:\*|(\d+)(?:-(\d+))?)(?:/(\d+))?$~', $part, $match, \PREG_UNMATCHED_AS_NULL) !== 1) {
                throw new \ValueError("The schedule \"{$expression}\" has \"{$part}\" as " . self::FIELDS[$index]);
            }
            [, $first, $last, $step] = $match;
            $from = (int) ($first ?? $least);
            $to = (int) ($last ?? ($first !== null && $step === null ? $first : $most));
            if ($from < $least || $to > $most || $from > $to || $step === '0') {
                throw new \ValueError("The schedule \"{$expression}\" has \"{$part}\" as " . self::FIELDS[$index] . ", which goes from {$least} to {$most}");
            }
            foreach (\range($from, $to, (int) ($step ?? 1)) as $value) {
                $values[$value] = true;
            }
        }

        return $values;
    }
}
