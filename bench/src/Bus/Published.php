<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\Repeats;
use Weft\Bench\Table;

/** The comparisons that php-service-bus has published, beside the same figures of a run here. */
final class Published
{
    /** Names of the publication, and who stands for them here. */
    private const CONTENDERS = [
        'php-service-bus' => ['php-service-bus', 'weft plain'],
        'Go' => ['go'],
        'pure PHP' => ['pure-php'],
        'symfony/messenger' => ['symfony-messenger'],
    ];

    /** Seconds for 100,000 commands and their events, on an i7-8700 with 16 GB and an SSD. Null: not published. */
    private const SECONDS = [
        'php-service-bus' => [50, 60, 65],
        'Go' => [20, 22, 30],
        'pure PHP' => [null, 260, 251],
        'symfony/messenger' => [105, 445, 415],
    ];

    /** Messages per second: filled, commands, events. */
    private const RATES = [
        'i5, 16 GB, SSD' => ['symfony/messenger' => [13_200, 250, 4_350], 'php-service-bus' => [10_200, 2_000, 6_700]],
        '2 processors, 4 GB, rented' => ['symfony/messenger' => [5_900, 670, 2_450], 'php-service-bus' => [6_000, 1_050, 4_100]],
        '8 processors, 16 GB, rented' => ['symfony/messenger' => [17_000, 1_600, 5_600], 'php-service-bus' => [10_900, 2_200, 8_000]],
    ];

    public static function seconds(Results $results): Table
    {
        $rows = [];
        foreach (self::SECONDS as $name => $seconds) {
            $published = array_map(static fn (?int $time): string => $time === null ? '–' : (string) $time, $seconds);
            foreach (self::here($results, $name) as $contender => $runs) {
                $rows[] = [$name, ...$published, $contender, (new Repeats($runs))->spread('seconds', 1)];
            }
        }

        return new Table(['published', '2019-05', '2020-01', '2020-06', 'here', 'seconds'], $rows);
    }

    public static function rates(Results $results): Table
    {
        $rows = [];
        foreach (self::RATES as $machine => $systems) {
            foreach ($systems as $name => $rates) {
                $rows[] = [$machine, $name, ...array_map(number_format(...), $rates)];
            }
        }
        foreach (['symfony/messenger', 'php-service-bus'] as $name) {
            foreach (self::here($results, $name) as $contender => $runs) {
                $here = new Repeats($runs);
                $rows[] = ['here', $contender, $here->spread('fill_per_s', 0), $here->spread('commands_per_s', 0), $here->spread('events_per_s', 0)];
            }
        }

        return new Table(['machine', 'system', 'filled/s', 'commands/s', 'events/s'], $rows);
    }

    /** @return array<string, list<Run>> of the contenders that stand for a name and took part */
    private static function here(Results $results, string $name): array
    {
        return array_intersect_key($results->byContender(), array_flip(self::CONTENDERS[$name]));
    }
}
