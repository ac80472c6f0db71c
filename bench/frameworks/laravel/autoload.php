<?php

declare(strict_types=1);

require_once __DIR__ . '/../../../autoload.php';
require_once '/usr/share/php/Illuminate/autoload.php';
require_once '/usr/share/php/GuzzleHttp/autoload.php';
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Weft\\Bench\\Frameworks\\Laravel\\')) {
        require __DIR__ . '/' . substr($class, strlen('Weft\\Bench\\Frameworks\\Laravel\\')) . '.php';
    }
});
foreach (['CONFIG', 'ROUTES', 'SERVICES', 'PACKAGES', 'EVENTS'] as $cache) {
    $_ENV["APP_{$cache}_CACHE"] = getenv('FRAMEWORKS_VAR') . '/laravel/' . strtolower($cache) . '.php';
}
