<?php

declare(strict_types=1);

/* What Composer writes to vendor/autoload.php, for Debian's packages: classes from /usr/share/php and those of the application. */
if (is_file(__DIR__ . '/vendor/autoload.php')) {
    return require __DIR__ . '/vendor/autoload.php';
}

require_once __DIR__ . '/../../autoload.php';
require_once '/usr/share/php/Illuminate/autoload.php';
require_once '/usr/share/php/GuzzleHttp/autoload.php';
// PHP 8.6 warns of a session handler without create_sid(), as that of Laravel 13 is, and Laravel's handler of errors throws at a warning.
PHP_VERSION_ID >= 80600 && @class_exists(Illuminate\Session\FileSessionHandler::class);
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'App\\') && is_file($file = __DIR__ . '/app/' . strtr(substr($class, 4), '\\', '/') . '.php')) {
        require $file;
    }
});
