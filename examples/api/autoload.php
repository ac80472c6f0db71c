<?php

declare(strict_types=1);

require __DIR__ . '/../../autoload.php';

spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/src/' . substr($class, strlen('Weft\\Examples\\Api\\')) . '.php';
    if (str_starts_with($class, 'Weft\\Examples\\Api\\') && is_file($file)) {
        require $file;
    }
});
