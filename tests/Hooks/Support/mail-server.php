<?php

declare(strict_types=1);

/*
 * An SMTP server that accepts mail after STARTTLS only (RFC 3207), and no mail before so many are there at once. It prints their bodies, one on a line:
 * mail-server.php DIRECTORY NUMBER. The directory has the certificate.
 */

use function Weft\async;
use function Weft\delay;

require __DIR__ . '/../../../autoload.php';

[, $directory, $number] = $argv;
$mails = 0;
$serve = static function ($connection) use ($number, &$mails): void {
    $isEncrypted = false;
    fwrite($connection, "220 localhost ready\r\n");
    while (($line = fgets($connection)) !== false) {
        $command = strtoupper(substr(trim($line), 0, 4));
        if ($command === 'STAR') {
            fwrite($connection, "220 begin\r\n");
            $isEncrypted = stream_socket_enable_crypto($connection, true, STREAM_CRYPTO_METHOD_TLS_SERVER) === true;
            continue;
        }
        if ($command === 'DATA') {
            fwrite($connection, "354 go on\r\n");
            $mail = '';
            while (!str_ends_with($mail, "\r\n.\r\n") && ($line = fgets($connection)) !== false) {
                $mail .= $line;
            }
            for ($mails++; $mails < $number;) {
                delay(0.001);
            }
            echo trim(substr((string) strstr($mail, "\r\n\r\n"), 0, -3)), "\n";
        }
        fwrite($connection, match (true) {
            $command === 'EHLO' => $isEncrypted ? "250 localhost\r\n" : "250-localhost\r\n250 STARTTLS\r\n",
            $command === 'MAIL' && !$isEncrypted => "530 STARTTLS first\r\n",
            $command === 'QUIT' => "221 bye\r\n",
            default => "250 ok\r\n",
        });
        if ($command === 'QUIT') {
            return;
        }
    }
};

Weft\run(static function () use ($directory, $number, $serve): void {
    $context = stream_context_create(['ssl' => ['local_cert' => "$directory/server.crt", 'local_pk' => "$directory/server.key"]]);
    $server = stream_socket_server('tcp://127.0.0.1:0', $code, $message, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, $context);
    echo stream_socket_get_name($server, false), "\n";
    for ($i = 0; $i < $number; $i++) {
        $connection = stream_socket_accept($server, 60.0);
        async(static fn() => $serve($connection));
    }
});
