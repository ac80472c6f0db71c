<?php

declare(strict_types=1);

/*
 * What the runtime itself costs: php -d extension=target/release/libweft.so bench/runtime/switches.php [rounds]
 * Each line is the best of five runs, in nanoseconds of CPU time for each operation.
 */

require __DIR__ . '/../../autoload.php';

use Weft\Native;
use Weft\Runtime\Channel;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Group;
use Weft\Runtime\Internal\Scheduler;

use function Weft\async;
use function Weft\run;
use function Weft\yieldNow;

$rounds = (int) ($argv[1] ?? 100_000);

/** Nanoseconds this process has computed: other processes do not count. */
function cpu(): int
{
    $usage = getrusage();

    return 1000 * (1_000_000 * ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'])
        + $usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']);
}

/** @param callable(int): void $work does the operation so many times */
function measure(string $name, int $rounds, callable $work): float
{
    $best = INF;
    for ($i = 0; $i < 5; $i++) {
        $from = cpu();
        $work($rounds);
        $best = min($best, (cpu() - $from) / $rounds);
    }
    printf("%-52s %8.0f ns\n", $name, $best);

    return $best;
}

function spawn(int $rounds): void
{
    run(static function () use ($rounds): void {
        $nothing = static function (): void {
        };
        for ($i = 0; $i < $rounds; $i++) {
            async($nothing);
            if ($i % 100 === 99) {
                yieldNow();
            }
        }
    });
}

/** What a server does for each request, without the request: a task of a group nobody waits for. */
function requests(int $rounds): void
{
    $group = new class implements Group {
        public int $left = 0;

        public function ended(Coroutine $child): void
        {
            $this->left--;
        }

        public function members(): array
        {
            return [];
        }

        public function cancel(string $reason): void
        {
        }
    };
    $handler = static fn(int $request): int => $request;
    run(static function () use ($rounds, $group, $handler): void {
        for ($i = $rounds / 100; $i > 0; $i--) {
            $group->left = 100;
            for ($request = 0; $request < 100; $request++) {
                Scheduler::$current->start($handler, [$request], $group, null);
            }
            while ($group->left > 0) {
                yieldNow();
            }
        }
    });
}

function calls(int $rounds): void
{
    $handler = static fn(int $request): int => $request;
    for ($i = 0; $i < $rounds; $i++) {
        $handler(...[$i]);
    }
}

function switches(int $rounds): void
{
    run(static function () use ($rounds): void {
        for ($task = 0; $task < 100; $task++) {
            async(static function () use ($rounds): void {
                for ($i = $rounds / 100; $i > 0; $i--) {
                    yieldNow();
                }
            });
        }
    });
}

function operations(int $rounds): void
{
    run(static function () use ($rounds): void {
        for ($task = 0; $task < 100; $task++) {
            async(static function () use ($rounds): void {
                for ($i = $rounds / 100; $i > 0; $i--) {
                    Scheduler::await(Native\sleep(0.0));
                }
            });
        }
    });
}

function nativeOperations(int $rounds): void
{
    for ($i = $rounds / 100; $i > 0; $i--) {
        for ($op = 0; $op < 100; $op++) {
            Native\sleep(0.0);
        }
        $left = 100;
        while ($left > 0) {
            foreach (Native\poll(null) as $done) {
                Native\take($done);
                $left--;
            }
        }
    }
}

function handOver(int $rounds, int $capacity): void
{
    run(static function () use ($rounds, $capacity): void {
        $channel = new Channel($capacity);
        async(static function () use ($channel, $rounds): void {
            for ($i = 0; $i < $rounds; $i++) {
                $channel->send($i);
            }
            $channel->close();
        });
        foreach ($channel as $_) {
        }
    });
}

function fibers(int $rounds): void
{
    $fiber = new Fiber(static function (): void {
        while (true) {
            Fiber::suspend();
        }
    });
    $fiber->start();
    for ($i = 0; $i < $rounds; $i++) {
        $fiber->resume();
    }
}

measure('resume and suspend of a plain Fiber', $rounds, fibers(...));
measure('spawn and finish a task', $rounds, spawn(...));
$called = measure('call a handler', $rounds, calls(...));
$tasks = measure('call it in a task of its own, as for a request', $rounds, requests(...));
printf("%-52s %8.0f ns\n", '  of which the task', $tasks - $called);
measure('yieldNow() among 100 tasks', $rounds, switches(...));
$native = measure('start, poll, take an operation, 100 in flight', $rounds, nativeOperations(...));
$awaited = measure('the same, awaited by 100 tasks', $rounds, operations(...));
printf("%-52s %8.0f ns\n", '  of which suspending and resuming', $awaited - $native);
measure('channel hand-over, capacity 0', $rounds, static fn(int $rounds) => handOver($rounds, 0));
measure('channel hand-over, capacity 64', $rounds, static fn(int $rounds) => handOver($rounds, 64));
