<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\TestCase;
use Weft\Bus\Internal\Cron;

final class CronTest extends TestCase
{
    /** @dataProvider rules */
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
        yield 'working days' => ['0 8 * * 1-5', '2026-03-06 09:00:00', 'Mon 2026-03-09 08:00:00'];
        yield 'Sunday as 7' => ['0 0 * * 7', '2026-03-04 00:00:00', 'Sun 2026-03-08 00:00:00'];
        yield 'either day' => ['0 0 13 * 5', '2026-03-01 00:00:00', 'Fri 2026-03-06 00:00:00'];
        yield 'the end of the year' => ['0 0 1 1 *', '2026-01-01 00:00:00', 'Fri 2027-01-01 00:00:00'];
        yield 'a leap day' => ['0 0 29 2 *', '2026-03-01 00:00:00', 'Tue 2028-02-29 00:00:00'];
        yield 'an hour left out by summer time' => ['30 2 * * *', '2026-03-29 00:00:00', 'Mon 2026-03-30 02:30:00', 'Europe/Berlin'];
        yield 'every minute of the hour that comes twice' => ['* * * * *', '2026-10-25 00:59:59 UTC', 'Sun 2026-10-25 02:00:00', 'Europe/Berlin'];
        yield 'the second time of the hour that comes twice' => ['30 2 * * *', '2026-10-25 00:30:00 UTC', 'Sun 2026-10-25 02:30:00', 'Europe/Berlin'];
        yield 'a zone of its own' => ['0 12 * * *', '2026-07-01 13:00:00', 'Thu 2026-07-02 12:00:00', 'Asia/Tokyo'];
    }

    /** @dataProvider zones */
    public function testAroundEachChangeOfTheClocksItIsTheNextMinuteThatFits(string $name): void
    {
        $zone = new \DateTimeZone($name);
        $changes = \array_slice($zone->getTransitions(\gmmktime(0, 0, 0, 1, 1, 2018), \gmmktime(0, 0, 0, 12, 31, 2018)), 1);
        self::assertNotSame([], $changes);
        foreach ($changes as ['ts' => $change]) {
            foreach (['30 2 * * *', '0 0 * * *', '15 1 * * *', '* * * * *', '*/20 0,2 * * *', '45 23 * * *'] as $rule) {
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
    public function testARuleThatIsNoneIsRefusedWithWhatIsWrong(string $rule, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);
        new Cron($rule, new \DateTimeZone('UTC'));
    }

    public static function mistakes(): iterable
    {
        yield 'too few fields' => ['* * * *', 'has 4'];
        yield 'a word' => ['soon * * * *', '"soon" as minute'];
        yield 'too large' => ['* 24 * * *', 'from 0 to 23'];
        yield 'backwards' => ['* * * 6-3 *', '"6-3" as month'];
        yield 'no step' => ['*/0 * * * *', '"*/0" as minute'];
        yield 'never' => ['0 0 30 2 *', 'never comes'];
    }
}
