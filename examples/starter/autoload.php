<?php

declare(strict_types=1);

// Composer's autoloader where `composer install` was run, else the copy of Weft that made this application.
if (is_file(__DIR__ . '/vendor/autoload.php')) {
    return require __DIR__ . '/vendor/autoload.php';
}

require __DIR__ . '/../../autoload.php';

spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/src/' . strtr(substr($class, strlen('App\\')), '\\', '/') . '.php';
    if (str_starts_with($class, 'App\\') && is_file($file)) {
        require $file;
    }
});
