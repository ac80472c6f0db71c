<?php

declare(strict_types=1);

use Illuminate\Support\Facades\Route;
use Weft\Tests\Bridge\Laravel\StateCheck;

/* `examples/laravel` with a page that checks what belongs to its request. */
$app = require __DIR__ . '/../../../../../examples/laravel/bootstrap/app.php';
$app->booted(static fn() => Route::middleware('web')->get('/check', StateCheck::class));

return $app;
