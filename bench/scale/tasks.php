<?php

declare(strict_types=1);

// Starts so many tasks that wait, and prints what they cost: php -d extension=… bench/scale/tasks.php 100000

use function Weft\async;
use function Weft\delay;
use function Weft\run;

require __DIR__ . '/../../autoload.php';

/** Resident memory in MiB. */
function resident(): float
{
    return preg_match('/^VmRSS:\s+(\d+) kB/m', (string) file_get_contents('/proc/self/status'), $match) ? $match[1] / 1024 : 0.0;
}

run(static function () use ($argv): void {
    delay(0.0);
    $before = [resident(), memory_get_usage()];
    $tasks = [];
    for ($i = 0; $i < (int) $argv[1]; ++$i) {
        $tasks[] = async(static fn () => delay(3600.0));
    }
    // Those that have a fiber have begun to wait by then; a task more might never get one.
    delay(0.1);
    echo json_encode([
        'resident_mib' => round(resident() - $before[0], 3),
        'php_mib' => round((memory_get_usage() - $before[1]) / 1024 ** 2, 3),
    ]), "\n";
    foreach ($tasks as $task) {
        $task->cancel();
    }
});
