<?php

declare(strict_types=1);

/*
 * Loads Weft's classes and functions where Composer is not used: in this repository's own examples, tests and tools, and in an application that
 * `weft new` has written. Composer's autoloader comes first: that of this checkout after `composer install`, or that of the project in whose
 * vendor/weft/weft this file lies. The PSR interfaces come from Debian otherwise.
 */

if (is_file(__DIR__ . '/vendor/autoload.php')) {
    return require __DIR__ . '/vendor/autoload.php';
}
if (str_ends_with(__DIR__, '/weft/weft') && is_file(__DIR__ . '/../../autoload.php')) {
    return require __DIR__ . '/../../autoload.php';
}

spl_autoload_register(static function (string $class): void {
    foreach (['Weft\\Tests\\' => 'tests', 'Weft\\' => 'src'] as $prefix => $directory) {
        if (!str_starts_with($class, $prefix)) {
            continue;
        }
        $file = __DIR__ . "/$directory/" . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
        return;
    }
});

foreach (['Psr/Log', 'Psr/Container', 'Cron', 'Symfony/Component/Console', 'Symfony/Component/Validator'] as $library) {
    if (is_file("/usr/share/php/$library/autoload.php")) {
        require_once "/usr/share/php/$library/autoload.php";
    }
}

require_once __DIR__ . '/src/Runtime/functions.php';
require_once __DIR__ . '/src/extension.php';
