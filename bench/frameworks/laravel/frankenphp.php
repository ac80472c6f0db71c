<?php

declare(strict_types=1);

// A worker of FrankenPHP, with one application and one request at a time. Debian has no Laravel Octane, so a request is begun, ended and forgotten by
// what Weft's bridge does in place of it: a clone of the application handles it, then services are reset.

use Weft\Bridge\Laravel\Internal\Instance;

require __DIR__ . '/autoload.php';

ignore_user_abort(true);
$instance = Instance::boot(__DIR__);
$handle = static function () use ($instance): void {
    $response = $instance->handle();
    http_response_code($response->status);
    foreach ($response->headers as $name => $values) {
        foreach ((array) $values as $value) {
            header("$name: $value", false);
        }
    }
    echo $response->body;
};
do {
    $continues = frankenphp_handle_request($handle);
    $instance->terminate();
    $instance->reset();
} while ($continues);
