<?php

declare(strict_types=1);

/*
 * A TCP proxy in a process of its own: php proxy.php HOST PORT. Its first line of output is the port it listens on; then each
 * line of input is answered by the number of round trips since the line before: "trips" only asks, "cut" closes every
 * connection, "away" does so and refuses new ones until "back", "hold" keeps back whatever the server says until "release".
 * "least" is answered by the number of round trips, since the last "trips", of the open connection that has made the fewest,
 * "accepted" by the number of connections, "received" by the number of bytes that the server has sent. "delay SECONDS" lets
 * whatever the server says from then on arrive so much later: a round trip takes that long at least. "say HEXADECIMAL" sends
 * these bytes to every client.
 */

[, $host, $port] = $argv;
// Small answers must not wait for the acknowledgement of the one before.
$context = stream_context_create(['socket' => ['tcp_nodelay' => true]]);
$listen = static fn (string $address) => stream_socket_server("tcp://$address", flags: STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, context: $context) ?: exit(1);
$listener = $listen('127.0.0.1:0');
$address = (string) stream_socket_get_name($listener, false);
echo substr((string) strrchr($address, ':'), 1), "\n";

$peers = $sides = $sockets = $lastFrom = $made = [];
$trips = $accepted = $received = 0;
$holds = false;
$delay = 0.0;
/** @var list<array{float, int, string}> when it is due, for whom, what */
$late = [];

$close = static function (int $id) use (&$peers, &$sides, &$sockets, &$made): void {
    foreach ([$id, $peers[$id] ?? $id] as $end) {
        if (isset($sockets[$end])) {
            fclose($sockets[$end]);
        }
        unset($sockets[$end], $peers[$end], $sides[$end], $made[$end]);
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
    stream_select($readable, $none, $none, ...$late === [] ? [null] : [0, (int) ceil(max(0.0, $late[0][0] - microtime(true)) * 1e6)]);
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
            if (str_starts_with($command, 'delay ')) {
                $delay = (float) substr($command, 6);
            }
            if (str_starts_with($command, 'say ')) {
                foreach (array_keys($sides, 'client', true) as $id) {
                    $pass($id, (string) hex2bin(trim(substr($command, 4))));
                }
            }
            if (trim($command) === 'trips') {
                $made = array_fill_keys(array_keys($made), 0);
            }
            echo match (trim($command)) {
                'least' => min($made ?: [0]),
                'accepted' => $accepted,
                'received' => $received,
                default => $trips,
            }, "\n";
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
            }
            $made[(int) $client] = 0;
            $accepted++;
            continue;
        }
        $id = (int) $stream;
        if (!isset($sockets[$id])) {
            continue;
        }
        $bytes = fread($stream, 1 << 20);
        if ($bytes === '' || $bytes === false) {
            $close($id);
            continue;
        }
        $connection = min($id, $peers[$id]);
        if ($sides[$id] === 'client' && ($lastFrom[$connection] ?? 'server') === 'server') {
            $trips++;
            $made[$id]++;
        }
        $lastFrom[$connection] = $sides[$id];
        $received += $sides[$id] === 'server' ? strlen($bytes) : 0;
        if ($delay > 0.0 && $sides[$id] === 'server') {
            $late[] = [microtime(true) + $delay, $peers[$id], $bytes];
        } else {
            $pass($peers[$id], $bytes);
        }
    }
}
