<?php

declare(strict_types=1);

/*
 * A mail server that keeps what it receives: `php smtp.php FILE`. It prints its port, takes one connection after the other, and appends
 * each mail to the file.
 */

$server = stream_socket_server('tcp://127.0.0.1:0') ?: exit(1);
echo substr(strrchr((string) stream_socket_get_name($server, false), ':') ?: '', 1), "\n";
while (($client = stream_socket_accept($server, -1)) !== false) {
    stream_set_timeout($client, 60);
    fwrite($client, "220 sink\r\n");
    $mail = null;
    while (($line = fgets($client)) !== false) {
        if ($mail !== null) {
            if (rtrim($line) === '.') {
                file_put_contents($argv[1], $mail . "\n=====\n", FILE_APPEND);
                $mail = null;
                fwrite($client, "250 kept\r\n");
            } else {
                $mail .= $line;
            }
            continue;
        }
        $command = strtoupper(substr($line, 0, 4));
        $mail = $command === 'DATA' ? '' : null;
        fwrite($client, match ($command) {
            'DATA' => "354 go on\r\n",
            'QUIT' => "221 bye\r\n",
            default => "250 ok\r\n",
        });
        if ($command === 'QUIT') {
            break;
        }
    }
    fclose($client);
}
