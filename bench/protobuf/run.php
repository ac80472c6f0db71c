<?php

declare(strict_types=1);

/*
 * What a message of users.proto costs to encode and to decode, with Weft's classes and with those of google/protobuf.
 * Run by bench/protobuf/run; each figure is the best of five rounds.
 */

use Weft\Protobuf\Codec;
use Weft\Tests\Protobuf\Generated\Api;

use function Weft\Native\protobufDecode;
use function Weft\Native\protobufEncode;

require __DIR__ . '/../../autoload.php';

const ROUNDS = 5;
const CALLS = 200_000;

$google = $argv[1] ?? null;
spl_autoload_register(static function (string $class) use ($google): void {
    foreach ([$google, '/usr/share/php'] as $root) {
        if (is_file($file = "{$root}/" . strtr($class, '\\', '/') . '.php')) {
            require $file;
        }
    }
});

/** Nanoseconds per call, the loop's own time taken off. */
function cost(Closure $work, int $calls = CALLS): float
{
    $best = INF;
    $empty = static fn() => null;
    for ($round = 0; $round < ROUNDS; $round++) {
        $times = [];
        foreach ([$empty, $work] as $job) {
            $start = hrtime(true);
            for ($i = 0; $i < $calls; $i++) {
                $job();
            }
            $times[] = hrtime(true) - $start;
        }
        $best = min($best, ($times[1] - $times[0]) / $calls);
    }

    return $best;
}

function row(string $what, Closure $encode, Closure $decode, int $calls = CALLS): void
{
    printf("%-44s %10.0f ns %10.0f ns\n", $what, cost($encode, $calls), cost($decode, $calls));
}

printf("PHP %s%s\n%-44s %13s %13s\n", PHP_VERSION, extension_loaded('protobuf') ? ', ext-protobuf' : '', '', 'encode', 'decode');

$request = new Api\GetUserRequest(id: 228);
$requestBytes = Codec::encode($request);
$user = new Api\User(id: 228, email: 'dmitry.k@test.tld', name: 'Dmitry K.', rating: 228.53);
$userBytes = Codec::encode($user);
$users = array_map(static fn(int $i) => new Api\User(id: $i, email: "user{$i}@test", name: "User {$i}", rating: $i * 1.53), range(0, 9));
$usersBytes = array_map(Codec::encode(...), $users);

row('GetUserRequest (3 bytes)', static fn() => protobufEncode($request), static fn() => protobufDecode(Api\GetUserRequest::class, $requestBytes));
row('User (42 bytes)', static fn() => protobufEncode($user), static fn() => protobufDecode(Api\User::class, $userBytes));
row('ten Users of List (299 bytes)', static function () use ($users): void {
    foreach ($users as $user) {
        protobufEncode($user);
    }
}, static function () use ($usersBytes): void {
    foreach ($usersBytes as $bytes) {
        protobufDecode(Api\User::class, $bytes);
    }
}, 20_000);

if ($google !== null) {
    $class = 'GoogleGenerated\User';
    $theirs = (new $class)->setId(228)->setEmail('dmitry.k@test.tld')->setName('Dmitry K.')->setRating(228.53);
    row('google/protobuf User (42 bytes)', static fn() => $theirs->serializeToString(), static function () use ($class, $userBytes): void {
        (new $class)->mergeFromString($userBytes);
    }, 20_000);
}
