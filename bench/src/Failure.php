<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Why a run in a results file has no numbers. */
final class Failure
{
    /** @param array<string, mixed> $run with `failed` and, where there is one, `log` */
    public static function describe(array $run): string
    {
        $log = $run['log'] ?? '';

        return $log === '' || str_contains($run['failed'], basename($log)) ? $run['failed'] : "{$run['failed']}; log: $log";
    }
}
