<?php

declare(strict_types=1);

// The seconds that so many connections take together, and then as many waits: waits.php weft|blocking CLIENT TASKS SECONDS

require __DIR__ . '/../../autoload.php';
require __DIR__ . '/clients.php';

[, $system, $client, $tasks, $seconds] = $argv;
$connect = waits()[$client];
$measure = static function (Closure $together) use ($connect, $tasks, $seconds): void {
    $began = hrtime(true);
    $waits = $together(array_fill(0, (int) $tasks, $connect));
    $connected = hrtime(true);
    $together(array_map(static fn(Closure $wait): Closure => static fn(): mixed => $wait((float) $seconds), $waits));
    echo json_encode(['connect_s' => ($connected - $began) / 1e9, 'seconds' => (hrtime(true) - $connected) / 1e9]);
};
if ($system === 'weft') {
    Weft\run(static fn() => $measure(Weft\all(...)));
} else {
    $measure(static fn(array $calls): array => array_map(static fn(Closure $call): mixed => $call(), $calls));
}
