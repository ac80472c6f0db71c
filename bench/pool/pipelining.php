<?php

declare(strict_types=1);

/*
 * What it is worth that statements whose results nobody has asked for yet share a round trip:
 * php -d extension=target/release/libweft.so bench/pool/pipelining.php [--rounds=N], with var/services/env sourced.
 *
 * Ten statements on one connection, one after the other and together, against both servers. Prints the median of five runs.
 */

require __DIR__ . '/../../autoload.php';

use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

use function Weft\run;

const STATEMENTS = 10;

$rounds = (int) (getopt('', ['rounds:'])['rounds'] ?? 1_000);
if ($rounds < 10) {
    fwrite(STDERR, "--rounds must be at least 10\n");
    exit(2);
}

$perSecond = static function (Closure $round) use ($rounds): float {
    $rates = [];
    for ($run = 0; $run < 5; ++$run) {
        $begin = hrtime(true);
        for ($i = 0; $i < $rounds; ++$i) {
            $round();
        }
        $rates[] = STATEMENTS * $rounds / ((hrtime(true) - $begin) / 1e9);
    }
    sort($rates);

    return $rates[2];
};

run(static function () use ($perSecond): void {
    foreach (['PostgreSQL' => 'DATABASE_URL', 'MariaDB' => 'WEFT_MYSQL_DSN'] as $name => $variable) {
        $db = Database::connect(getenv($variable) ?: throw new RuntimeException("$variable is not set"), new PoolOptions(size: 1));
        $singly = $perSecond(static fn () => $db->transaction(static function (Transaction $tx): void {
            for ($i = 0; $i < STATEMENTS; ++$i) {
                $tx->execute('SELECT ?', [$i])->value();
            }
        }));
        $together = $perSecond(static fn () => $db->transaction(static function (Transaction $tx): void {
            $results = [];
            for ($i = 0; $i < STATEMENTS; ++$i) {
                $results[] = $tx->execute('SELECT ?', [$i]);
            }
            array_map(static fn ($result) => $result->value(), $results);
        }));
        printf("%-10s  singly %7.0f statements/s, together %7.0f, %.1f x\n", $name, $singly, $together, $together / $singly);
        $db->close();
    }
});
