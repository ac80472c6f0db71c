<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;

/** bench/bus/README.md: a template with the last published results in it. */
final class Readme
{
    /** @param string $template text with {{machine}}, {{versions}}, {{commands}}, {{runs}}, {{delivery}} and {{table}} */
    public static function render(string $template, Results $results): string
    {
        return strtr($template, [
            '{{machine}}' => $results->machine,
            '{{versions}}' => self::versions($results->versions),
            '{{commands}}' => number_format(self::commands($results)),
            '{{runs}}' => (string) max(array_map(count(...), $results->byContender())),
            '{{delivery}}' => self::delivery($results),
            '{{table}}' => rtrim($results->table()->markdown()),
        ]);
    }

    /** @param array<string, string> $versions */
    private static function versions(array $versions): string
    {
        return implode(', ', array_map(
            static fn (string $product, string $version): string => "$product $version",
            array_keys($versions),
            $versions,
        ));
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
            static fn (array $run): bool => $run['transport'] === Transport::RabbitMq->value && $run['mode'] !== Mode::Safe->value && $run['persistent'],
        );

        return $persistent === [] ? 'transient' : 'persistent';
    }
}
