<?php

declare(strict_types=1);

/*
 * A name server that knows every name below .test as 192.0.2.1, and answers once ten different names have been asked for: name-server.php
 * ADDRESS. A name that does not begin with "host" is never answered.
 */

$socket = stream_socket_server("udp://$argv[1]:53", $code, $message, STREAM_SERVER_BIND);
if ($socket === false) {
    echo "failed\n";
    exit(1);
}
echo "ready\n";
$open = [];
while (true) {
    $question = (string) stream_socket_recvfrom($socket, 512, 0, $peer);
    if (strlen($question) < 17 || !str_starts_with(substr($question, 13), 'host')) {
        continue;
    }
    $end = strpos($question, "\0", 12) + 5;
    $type = unpack('n', $question, $end - 4)[1];
    $name = substr($question, 12, $end - 16);
    $answers = $type === 1 ? 1 : 0;
    $answer = substr($question, 0, 2) . "\x81\x80\0\1" . pack('n', $answers) . "\0\0\0\0" . substr($question, 12, $end - 12)
        . ($answers === 1 ? "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1" : '');
    $open[$name][] = [$answer, $peer];
    if (count($open) >= 10) {
        foreach ($open as $asked) {
            foreach ($asked as [$answer, $peer]) {
                stream_socket_sendto($socket, $answer, 0, $peer);
            }
        }
        // A second question for the same name, of the other family, may follow.
        $open = array_fill_keys(array_keys($open), []);
    }
}
