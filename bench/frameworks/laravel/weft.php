<?php

declare(strict_types=1);

// Weft with SLOTS applications in one process, as `artisan weft:serve --worker` has them.

use Illuminate\Contracts\Console\Kernel;
use Weft\App;
use Weft\Bridge\Laravel\Internal\Applications;
use Weft\Log\StreamLogger;

require __DIR__ . '/autoload.php';

/** @var Illuminate\Foundation\Application $console */
$console = require __DIR__ . '/bootstrap/app.php';
$console->make(Kernel::class)->bootstrap();
restore_error_handler();
restore_exception_handler();
$app = new App();
$app->http('127.0.0.1:' . getenv('PORT'))->fallback(Applications::of($console, (int) getenv('SLOTS'), StreamLogger::fromEnvironment()));
$app->run();
