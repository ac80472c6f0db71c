<?php

declare(strict_types=1);

/* Laravel from Debian, where Composer is not used. */
if (!is_file(dirname(__DIR__, 3) . '/vendor/autoload.php') && is_file('/usr/share/php/Illuminate/autoload.php')) {
    require_once '/usr/share/php/Illuminate/autoload.php';
    // PHP 8.6 warns of a session handler without create_sid(), as that of Laravel 13 is, and Laravel's handler of errors throws at a warning.
    if (PHP_VERSION_ID >= 80600) {
        // PHPUnit counts warnings that @ suppresses.
        set_error_handler(static fn(): bool => true);
        class_exists(Illuminate\Session\FileSessionHandler::class);
        restore_error_handler();
    }
}
