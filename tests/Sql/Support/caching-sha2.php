<?php

declare(strict_types=1);

/*
 * Lets clients in as MySQL 8 does with caching_sha2_password: php caching-sha2.php PASSWORD fast|full|tls|clear|sha256 DIRECTORY. "fast"
 * knows the password's hash already, "full" wants it encrypted with its public key, "tls" wants TLS and then the password
 * itself, "clear" and "sha256" switch to mysql_clear_password and sha256_password. Its first line of output is the port it
 * listens on; DIRECTORY has its key.pem (public) and certificate.pem by then, and keeps them for the next one. Whoever is in gets one answer to every statement: an error that says how.
 * Hashes and RSA are PHP's and OpenSSL's.
 */

[, $password, $mode, $directory] = $argv;
$pem = "{$directory}/server.pem";
if (!is_file($pem)) {
    $made = openssl_pkey_new(['private_key_bits' => 2048]) ?: exit(1);
    openssl_pkey_export($made, $private);
    $certificate = openssl_csr_sign(openssl_csr_new(['commonName' => 'localhost'], $made), null, $made, 1);
    openssl_x509_export($certificate, $public);
    file_put_contents("{$directory}/key.pem", openssl_pkey_get_details($made)['key']);
    file_put_contents("{$directory}/certificate.pem", $public);
    file_put_contents($pem, $private . $public);
}
$key = openssl_pkey_get_private("file://{$pem}") ?: exit(1);
$context = stream_context_create(['ssl' => ['local_cert' => $pem]]);
$listener = stream_socket_server('tcp://127.0.0.1:0', $code, $error, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, $context) ?: exit(1);
echo substr((string) strrchr((string) stream_socket_get_name($listener, false), ':'), 1), "\n";

$read = static function ($client) use (&$sequence): string {
    $header = (string) stream_get_contents($client, 4);
    if (strlen($header) < 4) {
        throw new RuntimeException('the client has gone');
    }
    $sequence = ord($header[3]) + 1;

    return (string) stream_get_contents($client, unpack('V', substr($header, 0, 3) . "\0")[1]);
};
$write = static function ($client, string $packet) use (&$sequence): void {
    fwrite($client, substr(pack('V', strlen($packet)), 0, 3) . chr($sequence++ & 255) . $packet);
};
$failure = static fn (int $code, string $message): string => "\xff" . pack('v', $code) . "#HY000{$message}";
$done = "\0\0\0\2\0\0\0";

$greet = static function ($client) use ($read, $write, $failure, $done, $password, $mode, $key, &$sequence): void {
    $sequence = 0;
    // No zero byte: it would end the scramble.
    $nonce = strtr(random_bytes(20), "\0", 'x');
    // The protocol of 4.1, databases, transactions, plugins, answers of any length, no EOF packets; TLS.
    $capabilities = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000 | 0x20_0000 | 0x100_0000 | ($mode === 'tls' ? 0x800 : 0);
    $write($client, "\x0a8.0.36\0" . pack('V', 7) . substr($nonce, 0, 8) . "\0" . pack('v', $capabilities & 0xFFFF) . chr(45)
        . pack('v', 2) . pack('v', $capabilities >> 16) . chr(21) . str_repeat("\0", 10) . substr($nonce, 8) . "\0caching_sha2_password\0");
    $answer = $read($client);
    if ($mode === 'tls') {
        stream_socket_enable_crypto($client, true, STREAM_CRYPTO_METHOD_TLS_SERVER);
        $answer = $read($client);
    }
    if ($mode === 'clear' || $mode === 'sha256') {
        $write($client, "\xfe" . ($mode === 'clear' ? 'mysql_clear_password' : 'sha256_password') . "\0{$nonce}\0");
        // What comes now is the password, or a request for the key.
        $given = $read($client);
        fwrite(STDERR, bin2hex($given) . "\n");
        $write($client, $failure(1045, "given {$given}"));
        return;
    }
    $afterUser = strpos($answer, "\0", 32) + 1;
    $scramble = substr($answer, $afterUser + 1, ord($answer[$afterUser]));
    $hash = hash('sha256', $password, true);
    $knows = $scramble === ($hash ^ hash('sha256', hash('sha256', $hash, true) . $nonce, true));
    if ($mode === 'fast' && $knows) {
        $write($client, "\1\3");
    } else {
        $write($client, "\1\4");
        $given = $read($client);
        if ($mode === 'full') {
            if ($given === "\2") {
                $write($client, "\1" . openssl_pkey_get_details($key)['key']);
                $given = $read($client);
            }
            openssl_private_decrypt($given, $hidden, $key, OPENSSL_PKCS1_OAEP_PADDING);
            $given = (string) $hidden ^ str_repeat($nonce, 1 + intdiv(strlen((string) $hidden), 20));
        } elseif ($mode !== 'tls') {
            throw new RuntimeException('the password in the clear');
        }
        $knows = $given === "{$password}\0";
    }
    if (!$knows) {
        $write($client, $failure(1045, 'Access denied'));
        return;
    }
    $write($client, $done);
    while (($command = $read($client)) !== '' && $command[0] !== "\1") {
        $write($client, str_starts_with($command, "\3SET") ? $done : $failure(1064, "let in by {$mode}"));
    }
};
while ($client = stream_socket_accept($listener, 60)) {
    // What PHP had read ahead, the beginning of TLS, would be lost to it.
    stream_set_read_buffer($client, 0);
    try {
        $greet($client);
    } catch (RuntimeException) {
    }
    fclose($client);
}
