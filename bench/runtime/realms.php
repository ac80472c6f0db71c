<?php

declare(strict_types=1);

/*
 * What a switch between realms costs: two tasks that yield to each other, without realms, both in one realm's tasks, and each in its own.
 *
 *     php -d extension=target/release/libweft.so bench/runtime/realms.php
 */

require __DIR__ . '/../../autoload.php';

use Weft\Runtime\Realm;

use function Weft\all;
use function Weft\run;
use function Weft\yieldNow;

const SWITCHES = 200_000;
const ROUNDS = 9;

$properties = '';
for ($i = 0; $i < 32; ++$i) {
    $properties .= "public static mixed \$p$i = null;";
}
eval("final class Statics { $properties }");
Realm::isolate(...array_map(static fn(int $i): string => "Statics::p$i", range(0, 31)));

/** Nanoseconds a switch. */
function measured(Closure $first, Closure $second): float
{
    $began = hrtime(true);
    run(static fn() => all([$first, $second]));

    return (hrtime(true) - $began) / SWITCHES;
}

$yield = static function (): void {
    for ($i = 0; $i < SWITCHES / 2; ++$i) {
        yieldNow();
    }
};
$set = static function (string $name) use ($yield): void {
    foreach (range(0, 31) as $i) {
        Statics::${"p$i"} = "$name $i";
    }
    $yield();
};
$contenders = [
    'no realm' => static fn(): float => measured($yield, $yield),
    'one realm' => static fn(): float => measured(static fn() => (new Realm())->run(static fn() => all([$yield, $yield])), static fn() => null),
    'two realms, 32 static properties' => static fn(): float => measured(
        static fn() => (new Realm())->run(static fn() => $set('one')),
        static fn() => (new Realm())->run(static fn() => $set('two')),
    ),
    'two realms, and three ini_set() that differ' => static fn(): float => measured(
        static fn() => (new Realm())->run(static function () use ($set): void {
            ini_set('precision', '10');
            ini_set('memory_limit', '1G');
            ini_set('user_agent', 'one');
            $set('one');
        }),
        static fn() => (new Realm())->run(static function () use ($set): void {
            ini_set('precision', '11');
            ini_set('memory_limit', '2G');
            ini_set('user_agent', 'two');
            $set('two');
        }),
    ),
];
$times = [];
for ($round = 0; $round < ROUNDS; ++$round) {
    foreach ($contenders as $name => $run) {
        $times[$name][] = $run();
    }
}
foreach ($times as $name => $values) {
    sort($values);
    printf("%-46s %6.0f ns a switch (%.0f-%.0f)\n", $name, $values[ROUNDS >> 1], $values[0], $values[ROUNDS - 1]);
}
