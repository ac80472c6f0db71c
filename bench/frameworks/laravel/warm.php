<?php

declare(strict_types=1);

// Caches configuration, routes and templates before anything is measured, as for production.

use Illuminate\Contracts\Console\Kernel;

require __DIR__ . '/autoload.php';

$directory = getenv('FRAMEWORKS_VAR') . '/laravel';
foreach (['views', 'logs'] as $name) {
    is_dir("$directory/$name") || mkdir("$directory/$name", recursive: true);
}
/** @var Illuminate\Foundation\Application $app */
$app = require __DIR__ . '/bootstrap/app.php';
$console = $app->make(Kernel::class);
foreach (['config:cache', 'route:cache', 'view:cache'] as $command) {
    if ($console->call($command) !== 0) {
        echo $console->output();
        exit(1);
    }
}
