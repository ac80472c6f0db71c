<?php

declare(strict_types=1);

require __DIR__ . '/../../autoload.php';

spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/src/' . substr($class, strlen('Weft\\Examples\\Shop\\')) . '.php';
    if (str_starts_with($class, 'Weft\\Examples\\Shop\\') && is_file($file)) {
        require $file;
    }
});
