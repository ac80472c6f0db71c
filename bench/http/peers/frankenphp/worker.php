<?php

declare(strict_types=1);

// A worker of FrankenPHP.

require __DIR__ . '/../../answer.php';

ignore_user_abort(true);
$handle = static function (): void {
    [$status, $type, $content] = answer((string) parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH), $_GET);
    http_response_code($status);
    header("Content-Type: $type");
    header('Content-Length: ' . strlen($content));
    echo $content;
};
while (frankenphp_handle_request($handle));
