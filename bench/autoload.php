<?php

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Weft\\Bench\\')) {
        $file = __DIR__ . '/src/' . strtr(substr($class, strlen('Weft\\Bench\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
