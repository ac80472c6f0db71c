<?php

declare(strict_types=1);

/*
 * php owner.php <DSN> <log> <seconds a lock lives> <rounds>: takes the lock "judged" again and again. A file lock of the
 * system, which ends with its process, is the judge: who finds it taken while it has Weft's lock has seen two owners. Each
 * owner writes its number down, in the order in which the judge let them in.
 */

namespace Weft\Tests\Lock\Fixtures;

use Weft\Lock\Lock;
use Weft\Lock\LockLostException;
use Weft\Lock\Locks;
use Weft\Sql\Database;

use function Weft\delay;
use function Weft\run;

require __DIR__ . '/../../../autoload.php';

[, $dsn, $log, $seconds, $rounds] = $argv;
run(static function () use ($dsn, $log, $seconds, $rounds): void {
    $locks = Locks::database(Database::connect($dsn), (float) $seconds);
    for ($i = 0; $i < (int) $rounds; $i++) {
        try {
            $locks->synchronized('judged', static function (Lock $lock) use ($log): void {
                $judge = \fopen("{$log}.judge", 'c');
                $line = \flock($judge, \LOCK_EX | \LOCK_NB) ? "owner {$lock->fence}\n" : "TWO OWNERS {$lock->fence}\n";
                \file_put_contents($log, $line, \FILE_APPEND);
                delay(\random_int(1, 5) / 1000);
                \flock($judge, \LOCK_UN);
            });
        } catch (LockLostException $lost) {
            \file_put_contents($log, "lost\n", \FILE_APPEND);
        }
    }
});
