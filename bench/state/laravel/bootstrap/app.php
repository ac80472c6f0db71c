<?php

declare(strict_types=1);

use Illuminate\Contracts\Console\Kernel as ConsoleContract;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Http\Kernel as HttpContract;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Console\Kernel as ConsoleKernel;
use Illuminate\Foundation\Exceptions\Handler;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\Route;
use Weft\Bench\State\Laravel\Kernel;
use Weft\Bench\State\Laravel\StateController;

$app = new Application(dirname(__DIR__));
// From Laravel 11 on the files in config/ add to those of the framework, which Debian's package lacks.
if (method_exists($app, 'dontMergeFrameworkConfiguration')) {
    $app->dontMergeFrameworkConfiguration();
}
$app->useStoragePath((string) getenv('STATE_VAR'));
$app->singleton(HttpContract::class, Kernel::class);
$app->singleton(ConsoleContract::class, ConsoleKernel::class);
$app->singleton(ExceptionHandler::class, Handler::class);
$app->booted(static function (): void {
    Auth::viaRequest('credentials', Kernel::user(...));
    Route::middleware('web')->get('/state', StateController::class);
});

return $app;
