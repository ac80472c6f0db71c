<?php

declare(strict_types=1);

/*
 * A TCP proxy in a process of its own: php proxy.php HOST PORT. Its first line of output is the port it listens on; then each
 * line of input is answered by the number of round trips since the line before: "trips" only asks, "cut" closes every
 * connection, "away" does so and refuses new ones until "back", "hold" keeps back whatever the server says until "release",
 * "idle SECONDS" closes connections that are silent for so long from then on. "idled" is answered by the number of those.
 * "delay SECONDS" lets whatever the server says from then on arrive so much later: a round trip takes that long at least.
 */

[, $host, $port] = $argv;
// Small answers must not wait for the acknowledgement of the one before.
$context = stream_context_create(['socket' => ['tcp_nodelay' => true]]);
$listen = static fn (string $address) => stream_socket_server("tcp://$address", flags: STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, context: $context) ?: exit(1);
$listener = $listen('127.0.0.1:0');
$address = (string) stream_socket_get_name($listener, false);
echo substr((string) strrchr($address, ':'), 1), "\n";

$peers = $sides = $sockets = $lastFrom = $heard = [];
$trips = $idled = 0;
$holds = false;
$mostIdle = INF;
$delay = 0.0;
/** @var list<array{float, int, string}> when it is due, for whom, what */
$late = [];

$close = static function (int $id) use (&$peers, &$sides, &$sockets, &$heard): void {
    foreach ([$id, $peers[$id] ?? $id] as $end) {
        if (isset($sockets[$end])) {
            fclose($sockets[$end]);
        }
        unset($sockets[$end], $peers[$end], $sides[$end], $heard[$end]);
    }
};

$pass = static function (int $to, string $bytes) use (&$sockets, $close): void {
    for (; $bytes !== '' && isset($sockets[$to]); $bytes = substr($bytes, (int) $written)) {
        $written = fwrite($sockets[$to], $bytes);
        if ($written === false) {
            $close($to);
        }
    }
};

while (true) {
    while ($late !== [] && $late[0][0] <= microtime(true)) {
        [, $to, $bytes] = array_shift($late);
        $pass($to, $bytes);
    }
    $readable = [STDIN, ...$listener === null ? [] : [$listener], ...array_values(array_filter(
        $sockets,
        static fn (int $id): bool => !$holds || $sides[$id] === 'client',
        ARRAY_FILTER_USE_KEY,
    ))];
    $none = null;
    $pause = min($late === [] ? INF : max(0.0, $late[0][0] - microtime(true)), is_finite($mostIdle) ? 0.02 : INF);
    stream_select($readable, $none, $none, ...is_finite($pause) ? [0, (int) ceil($pause * 1e6)] : [null]);
    foreach (is_finite($mostIdle) ? array_keys($sockets) : [] as $id) {
        if (isset($sockets[$id]) && microtime(true) - max($heard[$id], $heard[$peers[$id]]) > $mostIdle) {
            $idled++;
            $close($id);
        }
    }
    foreach ($readable as $stream) {
        if ($stream === STDIN) {
            $command = fgets(STDIN);
            if ($command === false) {
                exit(0);
            }
            if (in_array(trim($command), ['cut', 'away'], true)) {
                array_map($close, array_keys($sockets));
            }
            if (trim($command) === 'away') {
                fclose($listener);
                $listener = null;
            } elseif (trim($command) === 'back') {
                $listener = $listen($address);
            }
            $holds = trim($command) !== 'release' && ($holds || trim($command) === 'hold');
            if (str_starts_with($command, 'idle ')) {
                $mostIdle = (float) substr($command, 5);
            }
            if (str_starts_with($command, 'delay ')) {
                $delay = (float) substr($command, 6);
            }
            echo trim($command) === 'idled' ? $idled : $trips, "\n";
            $trips = 0;
            continue;
        }
        if ($stream === $listener) {
            $client = stream_socket_accept($listener);
            $server = stream_socket_client("tcp://$host:$port", context: $context);
            foreach ([[$client, $server, 'client'], [$server, $client, 'server']] as [$one, $other, $side]) {
                $sockets[(int) $one] = $one;
                $peers[(int) $one] = (int) $other;
                $sides[(int) $one] = $side;
                $heard[(int) $one] = microtime(true);
            }
            continue;
        }
        $id = (int) $stream;
        if (!isset($sockets[$id])) {
            continue;
        }
        $bytes = fread($stream, 1 << 20);
        $heard[$id] = microtime(true);
        if ($bytes === '' || $bytes === false) {
            $close($id);
            continue;
        }
        $connection = min($id, $peers[$id]);
        if ($sides[$id] === 'client' && ($lastFrom[$connection] ?? 'server') === 'server') {
            $trips++;
        }
        $lastFrom[$connection] = $sides[$id];
        if ($delay > 0.0 && $sides[$id] === 'server') {
            $late[] = [microtime(true) + $delay, $peers[$id], $bytes];
        } else {
            $pass($peers[$id], $bytes);
        }
    }
}
