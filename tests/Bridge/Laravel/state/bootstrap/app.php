<?php

declare(strict_types=1);

use Illuminate\Support\Facades\Route;
use Weft\Tests\Bridge\Laravel\SettingsCheck;
use Weft\Tests\Bridge\Laravel\StateCheck;

/* `examples/laravel` with pages that check what belongs to their requests. */
$app = require __DIR__ . '/../../../../../examples/laravel/bootstrap/app.php';
$app->booted(static function (): void {
    Route::middleware('web')->get('/check', StateCheck::class);
    Route::get('/settings', SettingsCheck::class);
    Route::get('/events', static fn() => response()->stream(static function (): void {
        while (ob_get_level() > 0) {
            ob_end_flush();
        }
        foreach ([1, 2, 3] as $number) {
            echo "data: $number\n\n";
            ob_flush();
            flush();
            while (!is_file(getenv('APP_VAR') . "/event-$number")) {
                usleep(1_000);
            }
        }
        echo 'end';
    }, 200, ['Content-Type' => 'text/event-stream']));
    Route::get('/prints', static function (): string {
        while (ob_get_level() > 0) {
            ob_end_clean();
        }
        echo 'printed ';
        usleep($_GET['n'] === '1' ? 200_000 : 1_000);
        ob_flush();
        echo "$_GET[n], ";

        return 'returned';
    });
    Route::get('/dd', static fn() => dd(['dumped' => $_GET['n']]));
});

return $app;
