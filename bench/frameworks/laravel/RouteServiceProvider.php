<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks\Laravel;

use Illuminate\Foundation\Support\Providers\RouteServiceProvider as ServiceProvider;
use Illuminate\Support\Facades\Route;

final class RouteServiceProvider extends ServiceProvider
{
    public function boot(): void
    {
        $this->routes(static function (): void {
            Route::get('/page', [PageController::class, 'page']);
            Route::get('/compute', [PageController::class, 'compute']);
        });
    }
}
