<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';
// The charts of the benchmarks.
require_once __DIR__ . '/../bench/autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Weft\\Site\\')) {
        $file = __DIR__ . '/src/' . strtr(substr($class, strlen('Weft\\Site\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
