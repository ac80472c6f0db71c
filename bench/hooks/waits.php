<?php

declare(strict_types=1);

// The seconds that so many waits of a client take together: waits.php weft|blocking CLIENT TASKS SECONDS

require __DIR__ . '/../../autoload.php';
require __DIR__ . '/clients.php';

[, $system, $client, $tasks, $seconds] = $argv;
$wait = waits()[$client];
$work = array_fill(0, (int) $tasks, static fn(): mixed => $wait((float) $seconds));
$began = hrtime(true);
if ($system === 'weft') {
    Weft\run(static fn() => Weft\all($work));
} else {
    array_map(static fn(Closure $one): mixed => $one(), $work);
}
echo (hrtime(true) - $began) / 1e9;
