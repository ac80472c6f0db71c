<?php

declare(strict_types=1);

/*
 * What the pool itself costs: php -d extension=target/release/libweft.so bench/pool/borrow.php [--rounds=N]
 *
 * Resources are plain objects and nothing is done with them. Prints the median of five runs of each, and how long borrowers waited
 * in five more.
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

/** @return array{float, float} hand-offs a second, and CPU of a hand-off in microseconds */
$contended = static function () use ($rounds, $cpuMicroseconds): array {
    $pool = new Pool(static fn (): object => new stdClass(), new PoolOptions(size: 4));
    $each = intdiv($rounds, 64);
    $borrower = static function () use ($pool, $each): void {
        for ($i = 0; $i < $each; $i++) {
            $lease = $pool->borrow();
            yieldNow();
            $pool->return($lease);
        }
    };
    [$begin, $cpu] = [hrtime(true), $cpuMicroseconds()];
    all(array_fill(0, 64, $borrower));
    [$seconds, $cpu] = [(hrtime(true) - $begin) / 1e9, $cpuMicroseconds() - $cpu];

    return [64 * $each / $seconds, $cpu / (64 * $each)];
};

/**
 * How long a borrower waits: for how many others, and for how much CPU of this process, which others on the machine do not lengthen.
 * Without the first turns of each, in which all come at once.
 *
 * @return array{int, int, float, float, float} median and most hand-offs to others, median and longest wait in microseconds, and the part
 *     of the waits that were longer than three times the median
 */
$waits = static function () use ($rounds, $cpuMicroseconds): array {
    $pool = new Pool(static fn (): object => new stdClass(), new PoolOptions(size: 4));
    $each = intdiv($rounds, 64);
    $times = $turns = array_fill(0, 64 * ($each - 2), 0);
    [$handedOver, $measured] = [0, 0];
    $borrower = static function () use ($pool, $each, $cpuMicroseconds, &$times, &$turns, &$handedOver, &$measured): void {
        for ($i = 0; $i < $each; $i++) {
            [$asked, $before] = [$cpuMicroseconds(), $handedOver];
            $lease = $pool->borrow();
            if ($i > 1) {
                $times[$measured] = $cpuMicroseconds() - $asked;
                $turns[$measured++] = $handedOver - $before;
            }
            ++$handedOver;
            yieldNow();
            $pool->return($lease);
        }
    };
    all(array_fill(0, 64, $borrower));
    sort($times);
    sort($turns);
    $middle = intdiv($measured, 2);

    $long = count(array_filter($times, static fn (float $time): bool => $time > 3 * $times[$middle]));

    return [$turns[$middle], end($turns), $times[$middle], end($times), $long / $measured];
};

run(static function () use ($uncontended, $contended, $waits, $median): void {
    $uncontended();
    $costs = array_map(static fn (): array => $uncontended(), range(1, 5));
    printf("uncontended borrow + return        %8.3f µs, %.3f µs of CPU\n", $median(array_column($costs, 0)), $median(array_column($costs, 1)));
    $contended();
    $runs = array_map(static fn (): array => $contended(), range(1, 5));
    printf("64 borrowers over 4 resources      %8.0f hand-offs/s, %.3f µs of CPU each\n", $median(array_column($runs, 0)), $median(array_column($runs, 1)));
    foreach (range(1, 5) as $ignored) {
        [$turns, $mostTurns, $time, $longest, $long] = $waits();
        printf("  a wait: %d hand-offs to others, at most %d; %.0f µs of CPU, at most %.0f, %.3f %% longer than 3 times the median\n", $turns, $mostTurns, $time, $longest, 100 * $long);
    }
});
