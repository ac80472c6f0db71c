<?php

declare(strict_types=1);

/*
 * A TCP proxy in a process of its own: php proxy.php PORT HOST PORT listens on the first port of 127.0.0.1 (0: any) and says on
 * which; then each line of input is done and answered by the number of connections: "cut" resets all of them, "slow SECONDS"
 * holds back what arrives for so long from then on.
 */

[, $listen, $host, $port] = $argv;
$listener = stream_socket_server("tcp://127.0.0.1:{$listen}") ?: exit(1);
stream_set_blocking($listener, false);
echo substr((string) strrchr((string) stream_socket_get_name($listener, false), ':'), 1), "\n";

/** @var array<int, resource> $sockets @var array<int, int> $peers @var array<int, list<array{float, string}>> $held for each socket, what it is still to get */
$sockets = $peers = $held = [];
$slow = 0.0;

$close = static function (int $id) use (&$sockets, &$peers, &$held): void {
    foreach ([$id, $peers[$id] ?? $id] as $end) {
        if (isset($sockets[$end])) {
            fclose($sockets[$end]);
        }
        unset($sockets[$end], $peers[$end], $held[$end]);
    }
};

while (true) {
    $now = microtime(true);
    $due = static function (int $id) use (&$held, $now): bool {
        return ($held[$id] ?? []) !== [] && $held[$id][0][0] <= $now;
    };
    $readable = [STDIN, $listener, ...array_filter($sockets, static fn (int $id): bool => count($held[$peers[$id]] ?? []) < 256, ARRAY_FILTER_USE_KEY)];
    $writable = array_filter($sockets, $due, ARRAY_FILTER_USE_KEY);
    $none = null;
    $waits = array_filter($held) !== [] ? 5_000 : 200_000;
    if (@stream_select($readable, $writable, $none, 0, $waits) === false) {
        continue;
    }
    foreach ($readable as $stream) {
        if ($stream === STDIN) {
            $command = fgets(STDIN);
            if ($command === false) {
                exit(0);
            }
            [$verb, $value] = explode(' ', trim($command)) + [1 => '0'];
            $count = intdiv(count($sockets), 2);
            if ($verb === 'cut') {
                array_map($close, array_keys($sockets));
            }
            $slow = $verb === 'slow' ? (float) $value : $slow;
            echo $count, "\n";
            continue;
        }
        if ($stream === $listener) {
            $client = @stream_socket_accept($listener, 0);
            $server = $client === false ? false : @stream_socket_client("tcp://{$host}:{$port}", timeout: 2.0);
            if ($client === false || $server === false) {
                if ($client !== false) {
                    fclose($client);
                }
                continue;
            }
            foreach ([[$client, $server], [$server, $client]] as [$one, $other]) {
                stream_set_blocking($one, false);
                $sockets[(int) $one] = $one;
                $peers[(int) $one] = (int) $other;
                $held[(int) $one] = [];
            }
            continue;
        }
        $id = (int) $stream;
        if (!isset($sockets[$id])) {
            continue;
        }
        $bytes = @fread($stream, 1 << 16);
        if ($bytes === '' || $bytes === false) {
            if (feof($stream) || $bytes === false) {
                $close($id);
            }
            continue;
        }
        $held[$peers[$id]][] = [$now + $slow, $bytes];
        $writable[] = $sockets[$peers[$id]];
    }
    foreach ($writable as $stream) {
        $id = is_resource($stream) ? (int) $stream : -1;
        while (isset($sockets[$id]) && $due($id)) {
            $written = @fwrite($stream, $held[$id][0][1]);
            if ($written === false) {
                $close($id);
            } elseif ($written < strlen($held[$id][0][1])) {
                $held[$id][0][1] = substr($held[$id][0][1], $written);
                break;
            } else {
                array_shift($held[$id]);
            }
        }
    }
}
