<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Page;

/** What bench/bus/README.md shows of the last published results. */
final class Readme
{
    /** @return array<string, string> by placeholder of the template */
    public static function values(Results $results, ?Results $matrix): array
    {
        return [
            'machine' => $results->machine,
            'versions' => Page::versions($results->versions),
            'commands' => number_format(self::commands($results)),
            'runs' => (string) max(array_map(count(...), $results->byContender())),
            'delivery' => self::delivery($results),
            'table' => $results->table()->markdown(),
            'published_seconds' => rtrim(Published::seconds($results)->markdown()),
            'published_rates' => rtrim(Published::rates($results)->markdown()),
            'matrix' => $matrix === null ? '' : self::matrix($matrix),
        ];
    }

    private static function matrix(Results $matrix): string
    {
        return "\n\n## Persistent messages and publisher confirms\n\nMachine: {$matrix->machine}. Versions: " . Page::versions($matrix->versions) . ".\n\n"
            . 'Seconds for ' . number_format(self::commands($matrix)) . ' commands and their events, median of ' . self::runsOfEach($matrix)
            . " runs (lowest–highest); *lost* and *duplicates* are sums over all of them.\n\n{$matrix->matrix()->markdown()}\n";
    }

    private static function runsOfEach(Results $matrix): int
    {
        $groups = [];
        foreach ($matrix->runs as $run) {
            $groups[$run->contender() . $run->cell()][] = $run;
        }

        return max(array_map(count(...), $groups));
    }

    /** @throws BenchmarkException when no run finished */
    private static function commands(Results $results): int
    {
        foreach ($results->runs as $run) {
            if ($run->isPerfect()) {
                return $run->number('rows');
            }
        }
        throw new BenchmarkException('no run in the results finished without a loss');
    }

    /** What the messages of those are that may be either. */
    private static function delivery(Results $results): string
    {
        $persistent = array_filter(
            array_map(static fn (Run $run): array => $run->toArray(), $results->runs),
            static fn (array $run): bool => $run['transport'] === Transport::RabbitMq->value && !Mode::from($run['mode'])->isDurable() && $run['persistent'],
        );

        return $persistent === [] ? 'transient' : 'persistent';
    }
}
