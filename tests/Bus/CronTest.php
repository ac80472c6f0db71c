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
        yield 'a zone of its own' => ['0 12 * * *', '2026-07-01 13:00:00', 'Thu 2026-07-02 12:00:00', 'Asia/Tokyo'];
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
