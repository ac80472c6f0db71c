#!/usr/bin/env php
<?php

declare(strict_types=1);

// A server whose requests query and compute, for measuring what a pool is worth: bench/pool/README.md says how.
// Its parameters are those of the benchmark of allsilaevex/swoole-connection-pool; --help lists them.

use Weft\Bench\BenchmarkException;
use Weft\Bench\Pool\Settings;
use Weft\Bench\Pool\Worker;

require __DIR__ . '/../../autoload.php';
require __DIR__ . '/../autoload.php';

$settings = Settings::ofCommandLine($argv);

// The workers are forked before anything of Weft runs, which does not survive a fork.
$parent = getmypid();
$workers = [];
for ($i = 0; $i < $settings->number('server.worker_num'); ++$i) {
    $pid = pcntl_fork();
    if ($pid === 0) {
        try {
            (new Worker($settings, static fn (): bool => posix_kill($parent, SIGTERM)))->run();
        } catch (BenchmarkException $failure) {
            fwrite(STDERR, "bench/pool/runner.php: {$failure->getMessage()}\n");
            exit(2);
        }
        exit(0);
    }
    $workers[$pid] = true;
}

$stop = static function () use (&$workers): void {
    array_map(static fn (int $pid): bool => posix_kill($pid, SIGTERM), array_keys($workers));
};
pcntl_async_signals(true);
pcntl_signal(SIGTERM, $stop, restart_syscalls: false);
pcntl_signal(SIGINT, $stop, restart_syscalls: false);

$failed = 0;
while ($workers !== []) {
    $pid = pcntl_wait($status);
    if ($pid > 0) {
        unset($workers[$pid]);
        $failed += pcntl_wifexited($status) && pcntl_wexitstatus($status) === 0 ? 0 : 1;
        // One that ends takes the others with it: half a server would be measured otherwise.
        $stop();
    }
}
exit($failed === 0 ? 0 : 1);
