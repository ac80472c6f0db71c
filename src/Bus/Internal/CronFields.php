<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Cron\CronExpression;
use Cron\FieldFactory;
use Cron\FieldInterface;

/**
 * The five fields of a crontab's line: read and matched by dragonmantank/cron-expression, and where that differs from Debian's
 * cron, written so that it does not.
 *
 * @internal
 */
final class CronFields
{
    private const NAMES = ['minute', 'hour', 'day of the month', 'month', 'day of the week'];
    private const BOUNDS = [[0, 59], [0, 23], [1, 31], [1, 12], [0, 7]];
    private const MONTHS = ['jan' => 1, 'feb' => 2, 'mar' => 3, 'apr' => 4, 'may' => 5, 'jun' => 6, 'jul' => 7, 'aug' => 8, 'sep' => 9, 'oct' => 10, 'nov' => 11, 'dec' => 12];
    private const DAYS = ['sun' => 0, 'mon' => 1, 'tue' => 2, 'wed' => 3, 'thu' => 4, 'fri' => 5, 'sat' => 6];

    /** @var list<int> of an hour, ascending */
    public readonly array $minutes;

    /** @var list<int> of a day, ascending */
    public readonly array $hours;

    /** Whether neither minutes nor hours begin with `*`. */
    public readonly bool $isAtFixedTimes;

    /** Whether both days must match: in cron either may match, unless one begins with `*`. */
    private readonly bool $bothDays;

    /** @var list<FieldInterface> */
    private readonly array $matchers;

    /**
     * @param string             $text   as it was written, with single spaces
     * @param list<string>       $fields as they were written
     * @param list<list<string>> $parts  of each field, any of which may fit
     */
    private function __construct(
        public readonly string $text,
        array $fields,
        private readonly array $parts,
    ) {
        $factory = new FieldFactory();
        $this->matchers = \array_map($factory->getField(...), \array_keys(self::NAMES));
        $day = new \DateTimeImmutable('2000-01-01 00:00:00 UTC');
        $this->minutes = \array_values(\array_filter(\range(0, 59), fn(int $minute): bool => $this->matches(0, $day->setTime(0, $minute))));
        $this->hours = \array_values(\array_filter(\range(0, 23), fn(int $hour): bool => $this->matches(1, $day->setTime($hour, 0))));
        $this->isAtFixedTimes = !self::isOpen($fields[0]) && !self::isOpen($fields[1]);
        $this->bothDays = self::isOpen($fields[2]) || self::isOpen($fields[4]);
    }

    /** @throws \ValueError that names the field */
    public static function of(string $expression): self
    {
        self::load();
        $text = \implode(' ', \preg_split('/\s+/', \trim($expression)) ?: []);
        if (\strtolower($text) === '@reboot') {
            throw new \ValueError('"@reboot" is not a time: send the command when the program starts');
        }
        if (\str_starts_with($text, '@') && !isset(CronExpression::MAPPINGS[\strtolower($text)])) {
            throw new \ValueError("The schedule \"{$expression}\" is not one of " . \implode(', ', \array_keys(CronExpression::MAPPINGS)) . ' and does not have five fields');
        }
        $fields = \explode(' ', CronExpression::MAPPINGS[\strtolower($text)] ?? $text);
        if (\count($fields) !== 5) {
            throw new \ValueError("A schedule must have five fields (minute, hour, day, month, weekday), \"{$expression}\" has " . \count($fields));
        }
        $parts = [];
        foreach ($fields as $index => $field) {
            $parts[] = \array_merge(...\array_map(static fn(string $part): array => self::read($part, $index, $expression), \explode(',', $field)));
        }

        return new self($text, $fields, $parts);
    }

    /** @param int $time seconds since 1970 of that day, as if its zone were UTC */
    public function isDay(int $time): bool
    {
        $date = new \DateTimeImmutable("@{$time}");
        if (!$this->matches(3, $date)) {
            return false;
        }
        $ofMonth = $this->matches(2, $date);
        $ofWeek = $this->matches(4, $date);

        return $this->bothDays ? $ofMonth && $ofWeek : $ofMonth || $ofWeek;
    }

    private function matches(int $index, \DateTimeImmutable $date): bool
    {
        foreach ($this->parts[$index] as $part) {
            // In a month without a 31st the library takes the working day nearest to the 1st.
            if ($part === '*' || !(\str_ends_with($part, 'W') && (int) $part > (int) $date->format('t')) && $this->matchers[$index]->isSatisfiedBy($date, $part, false)) {
                return true;
            }
        }

        return false;
    }

    private static function isOpen(string $field): bool
    {
        return $field[0] === '*' || $field[0] === '?';
    }

    /** @return non-empty-list<string> a part of a field, as the library takes it */
    private static function read(string $part, int $index, string $expression): array
    {
        $names = [3 => self::MONTHS, 4 => self::DAYS][$index] ?? [];
        $numbers = (string) \preg_replace_callback('/(?<![a-z])[a-z]{3}(?![a-km-z])/i', static fn(array $name): string => (string) ($names[\strtolower($name[0])] ?? $name[0]), $part);
        [$least, $most] = self::BOUNDS[$index];
        $refused = "The schedule \"{$expression}\" has \"{$part}\" as " . self::NAMES[$index];
        if (\preg_match('~^(?:\*|(\d{1,9})(?:-(\d{1,9}))?)(?:/(\d{1,9}))?$~D', $numbers, $match, \PREG_UNMATCHED_AS_NULL) !== 1) {
            return self::isSpecial($numbers, $index) ? [$numbers] : throw new \ValueError($refused);
        }
        /** @var array{string, ?string, ?string, ?string} $match */
        [, $first, $last, $step] = $match;
        $from = (int) ($first ?? $least);
        $to = (int) ($last ?? ($first !== null && $step === null ? $first : $most));
        if (\min($from, $to) < $least || \max($from, $to) > $most) {
            throw new \ValueError("{$refused}, which goes from {$least} to {$most}");
        }
        if ($from > $to) {
            throw new \ValueError("{$refused}, a range that ends before it begins: write two ranges" . ($step === null ? ', "' . self::split($from, $to, $index) . '"' : ''));
        }
        if ($step !== null && (int) $step === 0) {
            throw new \ValueError("{$refused}, whose step must be at least 1");
        }

        return $first === null && ((int) ($step ?? 1)) === 1 ? ['*'] : self::stepped($from, $to, (int) ($step ?? 1));
    }

    /** The ranges that someone means by a range over the end, such as 22-23,0-2 by 22-2. */
    private static function split(int $from, int $to, int $index): string
    {
        $least = self::BOUNDS[$index][0];
        $most = self::BOUNDS[$index][1];
        if ($index === 4) {
            // Sunday is 0, and 7 as well.
            $most = 6;
            if ($from === 7) {
                return $to === 0 ? '0' : "0-{$to}";
            }
        }

        return ($from === $most ? $most : "{$from}-{$most}") . ',' . ($to === $least ? $least : "{$least}-{$to}");
    }

    /**
     * Number by number: the library starts again with a step that is too long, and treats a 7 in it as Sunday.
     *
     * @return non-empty-list<string>
     */
    private static function stepped(int $from, int $to, int $step): array
    {
        return \array_map(strval(...), $step > $to - $from ? [$from] : \range($from, $to, $step));
    }

    /** The last day, a working day, or the last or nth weekday. */
    private static function isSpecial(string $part, int $index): bool
    {
        return match ($index) {
            2 => \preg_match('~^(?:\?|L|(?:0?[1-9]|[12]\d|3[01])W)$~D', $part) === 1,
            4 => \preg_match('~^(?:\?|[0-7]L|[0-7]#[1-5])$~D', $part) === 1,
            default => false,
        };
    }

    /** Version 3.3 of the library triggers deprecations of PHP 8.2 and later when it is compiled. */
    private static function load(): void
    {
        if (\class_exists(FieldFactory::class, false)) {
            return;
        }
        $before = \error_reporting(\error_reporting() & ~\E_DEPRECATED);
        try {
            if (!\class_exists(CronExpression::class)) {
                throw new \Error('Schedules need the library dragonmantank/cron-expression (Debian: php-dragonmantank-cron-expression)');
            }
            $factory = new FieldFactory();
            \array_map($factory->getField(...), \array_keys(self::NAMES));
        } finally {
            \error_reporting($before);
        }
    }
}
