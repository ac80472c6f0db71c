<?php

declare(strict_types=1);

/*
 * What the pool itself costs: php -d extension=target/release/libweft.so bench/pool/borrow.php [--rounds=N]
 *
 * Resources are plain objects and nothing is done with them. Prints the median of five runs of each, and for the contended case
 * how long borrowers waited.
 */

require __DIR__ . '/../../autoload.php';

use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;

use function Weft\all;
use function Weft\run;
use function Weft\yieldNow;

$options = getopt('', ['rounds:']);
$rounds = (int) ($options['rounds'] ?? 200_000);
if ($rounds < 1_000) {
    fwrite(STDERR, "--rounds must be at least 1000\n");
    exit(2);
}

$median = static function (array $values): float {
    sort($values);

    return $values[intdiv(count($values), 2)];
};

$cpuMicroseconds = static function (): float {
    $usage = getrusage();

    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1e6 + $usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec'];
};

/** @return array{float, float} microseconds, and microseconds of CPU, which others on the machine do not disturb */
$uncontended = static function () use ($rounds, $cpuMicroseconds): array {
    $pool = new Pool(static fn (): object => new stdClass(), new PoolOptions(size: 4));
    $pool->return($pool->borrow());
    [$begin, $cpu] = [hrtime(true), $cpuMicroseconds()];
    for ($i = 0; $i < $rounds; $i++) {
        $pool->return($pool->borrow());
    }

    return [(hrtime(true) - $begin) / $rounds / 1_000, ($cpuMicroseconds() - $cpu) / $rounds];
};

/** @return array{float, float, float, float} hand-offs a second, median and longest wait, and CPU of a hand-off in microseconds */
$contended = static function () use ($rounds, $cpuMicroseconds): array {
    $pool = new Pool(static fn (): object => new stdClass(), new PoolOptions(size: 4));
    $waits = [];
    $each = intdiv($rounds, 64);
    $borrower = static function () use ($pool, $each, &$waits): void {
        for ($i = 0; $i < $each; $i++) {
            $asked = hrtime(true);
            $lease = $pool->borrow();
            if ($i > 1) {
                $waits[] = hrtime(true) - $asked;
            }
            yieldNow();
            $pool->return($lease);
        }
    };
    [$begin, $cpu] = [hrtime(true), $cpuMicroseconds()];
    all(array_fill(0, 64, $borrower));
    [$seconds, $cpu] = [(hrtime(true) - $begin) / 1e9, $cpuMicroseconds() - $cpu];
    sort($waits);

    return [64 * $each / $seconds, $waits[intdiv(count($waits), 2)] / 1_000, end($waits) / 1_000, $cpu / (64 * $each)];
};

run(static function () use ($uncontended, $contended, $median): void {
    $uncontended();
    $costs = array_map(static fn (): array => $uncontended(), range(1, 5));
    printf("uncontended borrow + return        %8.3f µs, %.3f µs of CPU\n", $median(array_column($costs, 0)), $median(array_column($costs, 1)));
    $contended();
    $runs = array_map(static fn (): array => $contended(), range(1, 5));
    printf("64 borrowers over 4 resources      %8.0f hand-offs/s, %.3f µs of CPU each\n", $median(array_column($runs, 0)), $median(array_column($runs, 3)));
    printf("  waits: median %.0f µs, longest %.0f µs\n", $median(array_column($runs, 1)), $median(array_column($runs, 2)));
});
