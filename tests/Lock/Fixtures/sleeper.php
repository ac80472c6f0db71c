<?php

declare(strict_types=1);

/* php sleeper.php <DSN> <seconds a lock lives>: takes the lock "judged" and says so, keeps it for ever, and says when it is lost. */

namespace Weft\Tests\Lock\Fixtures;

use Weft\Lock\Lock;
use Weft\Lock\LockLostException;
use Weft\Lock\Locks;
use Weft\Sql\Database;

use function Weft\delay;
use function Weft\run;

require __DIR__ . '/../../../autoload.php';

[, $dsn, $seconds] = $argv;
run(static function () use ($dsn, $seconds): void {
    try {
        Locks::database(Database::connect($dsn), (float) $seconds)->synchronized('judged', static function (Lock $lock): void {
            echo "owner {$lock->fence}\n";
            delay(300.0);
        });
    } catch (LockLostException $lost) {
        echo "lost: {$lost->getMessage()}\n";
    }
});
