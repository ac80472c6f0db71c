<?php

declare(strict_types=1);

// Requests a second and the CPU of each: cost.php weft|weft-native|blocking CLIENT TASKS SECONDS

require __DIR__ . '/../../autoload.php';
require __DIR__ . '/clients.php';

[, $system, $client, $tasks, $seconds] = $argv;
$native = static function () use ($client): Closure {
    $urls = ['PDO pgsql' => getenv('DATABASE_URL') . '?sslmode=disable', 'PDO mysql' => getenv('WEFT_MYSQL_DSN')];
    static $database = null;
    $database ??= Weft\Sql\Database::connect($urls[$client], new Weft\Pool\PoolOptions(size: 50));

    return static fn(): mixed => $database->execute('SELECT 1')->column();
};
$connect = $system === 'weft-native' ? $native : requests()[$client];
$count = 0;
$task = static function () use ($connect, $seconds, &$count): void {
    $request = $connect();
    $request();
    $end = hrtime(true) + (float) $seconds * 1e9;
    do {
        $request();
        $count++;
    } while (hrtime(true) < $end);
};
$cpu = static function (): float {
    $usage = getrusage();

    return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'] + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
};
[$began, $used] = [hrtime(true), $cpu()];
$system === 'blocking' ? $task() : Weft\run(static fn() => Weft\all(array_fill(0, (int) $tasks, $task)));
$elapsed = (hrtime(true) - $began) / 1e9;
echo json_encode(['per_s' => $count / $elapsed, 'cpu_us' => ($cpu() - $used) / $count * 1e6]);
