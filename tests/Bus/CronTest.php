<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bus\Internal\Cron;

final class CronTest extends TestCase
{
    /** @dataProvider rules */
    #[DataProvider('rules')]
    public function testTheNextTimeIsTheOneThatTheRuleSays(string $rule, string $from, string $next, string $zone = 'UTC'): void
    {
        $zone = new \DateTimeZone($zone);
        $after = (new Cron($rule, $zone))->after((new \DateTimeImmutable($from, $zone))->getTimestamp());

        self::assertSame($next, (new \DateTimeImmutable("@{$after}"))->setTimezone($zone)->format('D Y-m-d H:i:s'));
    }

    public static function rules(): iterable
    {
        yield 'every minute' => ['* * * * *', '2026-03-04 05:06:07', 'Wed 2026-03-04 05:07:00'];
        yield 'never the same minute' => ['* * * * *', '2026-03-04 05:06:00', 'Wed 2026-03-04 05:07:00'];
        yield 'every five minutes' => ['*/5 * * * *', '2026-03-04 05:56:07', 'Wed 2026-03-04 06:00:00'];
        yield 'a list and a range' => ['15,45 9-17 * * *', '2026-03-04 17:50:00', 'Thu 2026-03-05 09:15:00'];
        yield 'a step from a number' => ['7/20 * * * *', '2026-03-04 05:30:00', 'Wed 2026-03-04 05:47:00'];
        yield 'a step that is longer than an hour' => ['*/100 * * * *', '2026-03-04 05:30:00', 'Wed 2026-03-04 06:00:00'];
        yield 'a step in a range' => ['10-30/15 * * * *', '2026-03-04 05:11:00', 'Wed 2026-03-04 05:25:00'];
        yield 'leading zeros and spaces' => [" 05   08\t* * *", '2026-03-04 05:11:00', 'Wed 2026-03-04 08:05:00'];
        yield 'working days' => ['0 8 * * 1-5', '2026-03-06 09:00:00', 'Mon 2026-03-09 08:00:00'];
        yield 'working days by name' => ['0 8 * * MON-FRI', '2026-03-06 09:00:00', 'Mon 2026-03-09 08:00:00'];
        yield 'a weekday by name' => ['0 8 * * mon', '2026-03-06 09:00:00', 'Mon 2026-03-09 08:00:00'];
        yield 'weekdays from Sunday by name' => ['0 8 * * SUN-TUE/2', '2026-03-06 09:00:00', 'Sun 2026-03-08 08:00:00'];
        yield 'months by name' => ['0 8 1 Apr,oct *', '2026-03-06 09:00:00', 'Wed 2026-04-01 08:00:00'];
        yield 'Sunday as 7' => ['0 0 * * 7', '2026-03-04 00:00:00', 'Sun 2026-03-08 00:00:00'];
        yield 'a range up to Sunday' => ['0 0 * * 6-7', '2026-03-07 00:00:00', 'Sun 2026-03-08 00:00:00'];
        yield 'every second weekday' => ['0 0 * * 0-7/2', '2026-03-07 00:00:00', 'Sun 2026-03-08 00:00:00'];
        yield 'either day' => ['0 0 13 * 5', '2026-03-01 00:00:00', 'Fri 2026-03-06 00:00:00'];
        yield 'both days where one begins with a star' => ['0 0 */2 * MON', '2026-03-01 00:00:00', 'Mon 2026-03-09 00:00:00'];
        yield 'the end of the year' => ['0 0 1 1 *', '2026-01-01 00:00:00', 'Fri 2027-01-01 00:00:00'];
        yield 'a leap day' => ['0 0 29 2 *', '2026-03-01 00:00:00', 'Tue 2028-02-29 00:00:00'];
        yield 'a leap day on a Sunday' => ['0 0 29 2 */7', '2026-03-01 00:00:00', 'Sun 2032-02-29 00:00:00'];
        yield '@daily' => ['@daily', '2026-03-04 05:06:07', 'Thu 2026-03-05 00:00:00'];
        yield '@midnight' => ['@midnight', '2026-03-04 05:06:07', 'Thu 2026-03-05 00:00:00'];
        yield '@hourly' => ['@Hourly', '2026-03-04 05:06:07', 'Wed 2026-03-04 06:00:00'];
        yield '@weekly' => ['@weekly', '2026-03-04 05:06:07', 'Sun 2026-03-08 00:00:00'];
        yield '@monthly' => ['@monthly', '2026-03-04 05:06:07', 'Wed 2026-04-01 00:00:00'];
        yield '@yearly' => ['@yearly', '2026-03-04 05:06:07', 'Fri 2027-01-01 00:00:00'];
        yield '@annually' => ['@annually', '2026-03-04 05:06:07', 'Fri 2027-01-01 00:00:00'];
        yield 'the last day of the month' => ['0 0 L * *', '2026-02-04 05:06:07', 'Sat 2026-02-28 00:00:00'];
        yield 'the working day next to the 15th' => ['0 0 15W * *', '2026-02-04 05:06:07', 'Mon 2026-02-16 00:00:00'];
        yield 'no working day next to a day that is not there' => ['0 0 31W * *', '2026-02-04 05:06:07', 'Tue 2026-03-31 00:00:00'];
        yield 'the last Friday' => ['0 0 * * FRIL', '2026-02-04 05:06:07', 'Fri 2026-02-27 00:00:00'];
        yield 'the second Monday' => ['0 0 * * MON#2', '2026-02-14 05:06:07', 'Mon 2026-03-09 00:00:00'];
        yield 'a zone of its own' => ['0 12 * * *', '2026-07-01 13:00:00', 'Thu 2026-07-02 12:00:00', 'Asia/Tokyo'];
        yield 'a zone that is an offset' => ['0 12 * * *', '2026-07-01 13:00:00', 'Thu 2026-07-02 12:00:00', '+05:30'];
    }

    /**
     * @dataProvider changes
     *
     * @param list<string> $times of the rule in a day or two, in UTC
     */
    #[DataProvider('changes')]
    public function testWhereTheClocksChangeItIsDueAsDebiansCronSays(string $zone, string $rule, string $from, array $times): void
    {
        $cron = new Cron($rule, new \DateTimeZone($zone));
        $time = (new \DateTimeImmutable($from))->getTimestamp();
        $found = [];
        foreach ($times as $_) {
            $found[] = \gmdate('m-d H:i', $time = $cron->after($time));
        }

        self::assertSame($times, $found);
    }

    public static function changes(): iterable
    {
        // At 02:00, 01:00 UTC, it is 03:00; and at 03:00, 01:00 UTC, it is 02:00.
        yield 'Berlin, a time left out' => ['Europe/Berlin', '30 2 * * *', '2026-03-28T12:00Z', ['03-29 01:00', '03-30 00:30']];
        yield 'Berlin, several times left out' => ['Europe/Berlin', '0-59/10 2 * * *', '2026-03-28T12:00Z', ['03-29 01:00', '03-30 00:00']];
        yield 'Berlin, a time left out and the one after it' => ['Europe/Berlin', '0 2,3 * * *', '2026-03-28T12:00Z', ['03-29 01:00', '03-30 00:00', '03-30 01:00']];
        yield 'Berlin, a time that comes twice' => ['Europe/Berlin', '30 2 * * *', '2026-10-24T12:00Z', ['10-25 00:30', '10-26 01:30']];
        yield 'Berlin, and asked in between' => ['Europe/Berlin', '30 2 * * *', '2026-10-25T00:45Z', ['10-26 01:30']];
        yield 'Berlin, every twenty minutes of the hour left out' => ['Europe/Berlin', '*/20 2 * * *', '2026-03-28T12:00Z', ['03-30 00:00', '03-30 00:20']];
        yield 'Berlin, every twenty minutes of the hour that comes twice' => ['Europe/Berlin', '*/20 2 * * *', '2026-10-24T12:00Z', ['10-25 00:00', '10-25 00:20', '10-25 00:40', '10-25 01:00', '10-25 01:20', '10-25 01:40', '10-26 01:00']];
        yield 'Berlin, each hour' => ['Europe/Berlin', '30 * * * *', '2026-10-24T23:45Z', ['10-25 00:30', '10-25 01:30', '10-25 02:30']];
        yield 'Berlin, each hour in spring' => ['Europe/Berlin', '30 * * * *', '2026-03-29T00:00Z', ['03-29 00:30', '03-29 01:30']];
        // At 02:00, 07:00 UTC, it is 03:00; and at 02:00, 06:00 UTC, it is 01:00.
        yield 'New York, a time left out' => ['America/New_York', '15 2 * * *', '2026-03-07T12:00Z', ['03-08 07:00', '03-09 06:15']];
        yield 'New York, a time that comes twice' => ['America/New_York', '15 1 * * *', '2026-10-31T12:00Z', ['11-01 05:15', '11-02 06:15']];
        yield 'New York, every half hour' => ['America/New_York', '*/30 1 * * *', '2026-10-31T12:00Z', ['11-01 05:00', '11-01 05:30', '11-01 06:00', '11-01 06:30', '11-02 06:00']];
        // Half an hour: at 02:00, 15:30 UTC, it is 02:30; and at 02:00, 15:00 UTC, it is 01:30.
        yield 'Lord Howe, a time left out' => ['Australia/Lord_Howe', '15 2 * * *', '2026-10-03T00:00Z', ['10-03 15:30', '10-04 15:15']];
        yield 'Lord Howe, a time that is there' => ['Australia/Lord_Howe', '45 2 * * *', '2026-10-03T00:00Z', ['10-03 15:45', '10-04 15:45']];
        yield 'Lord Howe, a time that comes twice' => ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T00:00Z', ['04-04 14:45', '04-05 15:15']];
        // Midnight itself is left out.
        yield 'Cairo, midnight left out' => ['Africa/Cairo', '@daily', '2026-04-23T12:00Z', ['04-23 22:00', '04-24 21:00']];
        // A whole day, 30 December 2011, was left out: a correction.
        yield 'Apia, a day left out' => ['Pacific/Apia', '0 12 * * *', '2011-12-29T00:00Z', ['12-29 22:00', '12-30 22:00']];
    }

    /** @dataProvider zones */
    #[DataProvider('zones')]
    public function testAroundEachChangeOfTheClocksItIsTheNextMinuteThatFits(string $name): void
    {
        $zone = new \DateTimeZone($name);
        $changes = \array_slice($zone->getTransitions(\gmmktime(0, 0, 0, 1, 1, 2018), \gmmktime(0, 0, 0, 12, 31, 2018)), 1);
        self::assertNotSame([], $changes);
        foreach ($changes as ['ts' => $change]) {
            foreach (['* * * * *', '*/20 0,2 * * *', '*/59 1 * * *'] as $rule) {
                $cron = new Cron($rule, $zone);
                foreach ([-7_300, -3_601, -3_600, -1_801, -60, -1, 0, 59, 1_799, 3_600] as $offset) {
                    $next = self::nextMinuteThatFits($rule, $zone, $change + $offset);
                    self::assertSame($next, $cron->after($change + $offset), "{$rule} after " . \gmdate('c', $change + $offset));
                }
            }
        }
    }

    /** @return iterable<string, array{string}> */
    public static function zones(): iterable
    {
        yield 'an hour at night' => ['Europe/Berlin'];
        yield 'half an hour' => ['Australia/Lord_Howe'];
        yield 'at midnight' => ['America/Sao_Paulo'];
        yield 'back to midnight' => ['America/Havana'];
    }

    /** Each minute is looked at, for rules of minutes and hours. */
    private static function nextMinuteThatFits(string $rule, \DateTimeZone $zone, int $time): int
    {
        [$minutes, $hours] = \array_map(
            static fn(string $field): array => match ($field) {
                '*' => \range(0, 59),
                '*/20' => [0, 20, 40],
                '*/59' => [0, 59],
                default => \array_map('intval', \explode(',', $field)),
            },
            \array_slice(\explode(' ', $rule), 0, 2),
        );
        do {
            $time += 60 - $time % 60;
            $moment = (new \DateTimeImmutable("@{$time}"))->setTimezone($zone);
        } while (!\in_array((int) $moment->format('i'), $minutes, true) || !\in_array((int) $moment->format('G'), $hours, true));

        return $time;
    }

    /** @dataProvider mistakes */
    #[DataProvider('mistakes')]
    public function testAnInvalidRuleIsRefusedWithTheReason(string $rule, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);
        new Cron($rule, new \DateTimeZone('UTC'));
    }

    public static function mistakes(): iterable
    {
        yield 'too few fields' => ['* * * *', 'has 4'];
        yield 'too many fields' => ['* * * * * *', 'has 6'];
        yield 'a word' => ['soon * * * *', 'The schedule "soon * * * *" has "soon" as minute'];
        yield 'a weekday as month' => ['* * * MON *', '"MON" as month'];
        yield 'too large' => ['* 24 * * *', '"24" as hour, which goes from 0 to 23'];
        yield 'beyond every number' => ['99999999999999999999 * * * *', '"99999999999999999999" as minute'];
        yield 'backwards' => ['* * * 6-3 *', '"6-3" as month, a range that ends before it begins: write two ranges, "6-12,1-3"'];
        yield 'over midnight' => ['0 22-2 * * *', '"22-2" as hour, a range that ends before it begins: write two ranges, "22-23,0-2"'];
        yield 'over the last hour' => ['0 23-0 * * *', 'write two ranges, "23,0"'];
        yield 'over the weekend' => ['0 0 * * FRI-MON', '"FRI-MON" as day of the week, a range that ends before it begins: write two ranges, "5-6,0-1"'];
        yield 'over Sunday' => ['0 3 * * 7-2', 'write two ranges, "0-2"'];
        yield 'over midnight in steps' => ['0 22-2/2 * * *', 'a range that ends before it begins: write two ranges'];
        yield 'backwards and too large' => ['0 24-2 * * *', '"24-2" as hour, which goes from 0 to 23'];
        yield 'no step' => ['*/0 * * * *', '"*/0" as minute, whose step must be at least 1'];
        yield 'a step below zero' => ['*/-5 * * * *', '"*/-5" as minute'];
        yield 'an empty part' => ['1,,2 * * * *', '"" as minute'];
        yield 'never' => ['0 0 30 2 *', 'never fires'];
        yield 'the last of the hours' => ['0 L * * *', '"L" as hour'];
        yield 'the sixth Monday' => ['0 0 * * MON#6', '"MON#6" as day of the week'];
        yield '@reboot' => ['@reboot', '"@reboot" is not a time'];
        yield 'another name' => ['@fortnightly', 'is not one of @yearly, @annually'];
    }
}
