<?php

declare(strict_types=1);

/*
 * Waits beside other tasks, for a profiler or a count of system calls: pairs of tasks send each other a byte and wait for it, each ROUNDS times.
 * The difference between two numbers of rounds is the cost of the waits alone.
 *
 * usage: strace -c php -d extension=target/release/libweft.so bench/hooks/wait.php TASKS ROUNDS
 *        valgrind --tool=callgrind php -d extension=target/release/libweft.so bench/hooks/wait.php TASKS ROUNDS
 */

require __DIR__ . '/../../autoload.php';

$tasks = (int) ($argv[1] ?? 2);
$rounds = (int) ($argv[2] ?? 1000);

Weft\run(static function () use ($tasks, $rounds): void {
    $exchanges = [];
    for ($i = 0; $i < $tasks; $i += 2) {
        [$near, $far] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $exchanges[] = static function () use ($near, $rounds): void {
            for ($round = 0; $round < $rounds; $round++) {
                fwrite($near, 'x');
                fread($near, 1);
            }
        };
        $exchanges[] = static function () use ($far, $rounds): void {
            for ($round = 0; $round < $rounds; $round++) {
                fread($far, 1);
                fwrite($far, 'x');
            }
        };
    }
    Weft\all($exchanges);
});
