<?php

declare(strict_types=1);

/*
 * A TCP proxy in a process of its own: php proxy.php PORT HOST PORT listens on the first port of 127.0.0.1 (0: any) and says on
 * which; then each line of input is done and answered by the number of connections: "cut" resets all of them, "slow SECONDS"
 * holds back what arrives for so long from then on.
 */

/** Bytes of one direction that are held back; no more are read then. A link of 50 ms and 500 MB/s has 12 MB in flight each way. */
const MOST_HELD = 32 << 20;
/** PHP reads 8 KiB at a time otherwise. */
const READ_SIZE = 1 << 16;

[, $listen, $host, $port] = $argv;
$listener = stream_socket_server("tcp://127.0.0.1:{$listen}") ?: exit(1);
stream_set_blocking($listener, false);
echo substr((string) strrchr((string) stream_socket_get_name($listener, false), ':'), 1), "\n";

/**
 * @var array<int, resource> $sockets
 * @var array<int, int> $peers
 * @var array<int, SplQueue<array{float, string}>> $held for each socket what it is still to get, and when
 * @var array<int, int> $bytesHeld for each socket
 */
$sockets = $peers = $held = $bytesHeld = [];
$slow = 0.0;

$close = static function (int $id) use (&$sockets, &$peers, &$held, &$bytesHeld): void {
    foreach ([$id, $peers[$id] ?? $id] as $end) {
        if (isset($sockets[$end])) {
            fclose($sockets[$end]);
        }
        unset($sockets[$end], $peers[$end], $held[$end], $bytesHeld[$end]);
    }
};

while (true) {
    $now = microtime(true);
    $due = static function (int $id) use (&$held, &$now): bool {
        return isset($held[$id]) && !$held[$id]->isEmpty() && $held[$id]->bottom()[0] <= $now;
    };
    $readable = [STDIN, $listener, ...array_filter($sockets, static fn (int $id): bool => ($bytesHeld[$peers[$id]] ?? 0) < MOST_HELD, ARRAY_FILTER_USE_KEY)];
    $writable = array_filter($sockets, $due, ARRAY_FILTER_USE_KEY);
    $none = null;
    $wait = 0.2;
    foreach (array_diff_key($held, $writable) as $queue) {
        $wait = $queue->isEmpty() ? $wait : min($wait, $queue->bottom()[0] - $now);
    }
    if (@stream_select($readable, $writable, $none, 0, (int) ceil($wait * 1e6)) === false) {
        continue;
    }
    $now = microtime(true);
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
                stream_set_chunk_size($one, READ_SIZE);
                $sockets[(int) $one] = $one;
                $peers[(int) $one] = (int) $other;
                $held[(int) $one] = new SplQueue();
                $bytesHeld[(int) $one] = 0;
            }
            continue;
        }
        $id = (int) $stream;
        if (!isset($sockets[$id])) {
            continue;
        }
        $bytes = @fread($stream, READ_SIZE);
        if ($bytes === '' || $bytes === false) {
            if (feof($stream) || $bytes === false) {
                $close($id);
            }
            continue;
        }
        $held[$peers[$id]]->enqueue([$now + $slow, $bytes]);
        $bytesHeld[$peers[$id]] += strlen($bytes);
        $writable[] = $sockets[$peers[$id]];
    }
    foreach ($writable as $stream) {
        $id = is_resource($stream) ? (int) $stream : -1;
        while (isset($sockets[$id]) && $due($id)) {
            [$at, $bytes] = $held[$id]->dequeue();
            $written = @fwrite($stream, $bytes);
            if ($written === false) {
                $close($id);
                break;
            }
            $bytesHeld[$id] -= $written;
            if ($written < strlen($bytes)) {
                $held[$id]->unshift([$at, substr($bytes, $written)]);
                break;
            }
        }
    }
}
