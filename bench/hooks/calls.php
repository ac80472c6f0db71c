<?php

declare(strict_types=1);

/*
 * What the wrappers around calls of libraries cost: nanoseconds a call that does not wait, with and without the extension.
 *
 * usage: php -d extension=target/release/libweft.so bench/hooks/calls.php
 */

require __DIR__ . '/../../autoload.php';

const CALLS = 1_000_000;
const ROUNDS = 7;

/** @return array<string, float> nanoseconds by call, the best of the rounds */
function measure(): array
{
    $pdo = new PDO('sqlite::memory:');
    $stream = fopen('php://memory', 'r+');
    $calls = [
        'PDO::getAttribute()' => static function () use ($pdo): void {
            for ($i = 0; $i < CALLS; $i++) {
                $pdo->getAttribute(PDO::ATTR_ERRMODE);
            }
        },
        'fgetc()' => static function () use ($stream): void {
            for ($i = 0; $i < CALLS; $i++) {
                fgetc($stream);
            }
        },
        'PDO::errorCode(), not wrapped' => static function () use ($pdo): void {
            for ($i = 0; $i < CALLS; $i++) {
                $pdo->errorCode();
            }
        },
    ];
    $best = [];
    for ($round = 0; $round < ROUNDS; $round++) {
        foreach ($calls as $name => $call) {
            $start = hrtime(true);
            $call();
            $best[$name] = min($best[$name] ?? INF, (hrtime(true) - $start) / CALLS);
        }
    }

    return $best;
}

/** @param array<string, float> $best */
function show(string $where, array $best): void
{
    foreach ($best as $name => $nanoseconds) {
        printf("%-36s %-30s %6.1f ns\n", $where, $name, $nanoseconds);
    }
}

if (!in_array('--here', $argv, true)) {
    passthru(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg(__FILE__) . ' --here');
}
if (!extension_loaded('weft')) {
    show('without the extension', measure());
    exit;
}
show('outside of tasks', measure());
Weft\run(static fn() => show('in a task', measure()));
Weft\run(static function (): void {
    $other = new PDO('sqlite::memory:');
    @$other->sqliteCreateFunction('pause', static fn(): mixed => Weft\delay(3600));
    $waits = Weft\async(static fn(): mixed => $other->query('SELECT pause()'));
    Weft\delay(0.01);
    show('in a task, another call suspended', measure());
    $waits->cancel();
});
