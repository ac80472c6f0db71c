<?php

declare(strict_types=1);

use Illuminate\Support\Facades\DB;
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
    Route::get('/export', static fn() => response()->stream(static function (): void {
        for ($n = (int) $_GET['pieces']; $n > 0; $n--) {
            echo str_repeat('X', 65_536);
            ob_get_level() > 0 && ob_flush();
            flush();
        }
    }));
    Route::get('/peak', static function (): string {
        preg_match('/VmHWM:\s+(\d+)/', (string) file_get_contents('/proc/self/status'), $peak);

        return $peak[1];
    });
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
    Route::get('/streamed', static function () {
        app()->instance('number', request('n'));

        return response()->stream(static function (): void {
            // The second piece is made after a wait.
            foreach (['first', 'second'] as $piece) {
                echo "$piece of ", request('n'), app()->bound('number') && app('number') === request('n') ? '' : ' without what was bound for it', ';';
                flush();
                usleep(1_000);
            }
        });
    });
    Route::get('/terminated', static function (): string {
        echo 'printed and ';
        app()->terminating(static function (): void {
            while (!is_file(getenv('APP_VAR') . '/answered')) {
                usleep(1_000);
            }
            touch(getenv('APP_VAR') . '/terminated-' . request('n'));
        });

        return 'answered';
    });
    Route::get('/wait', static function (): void {
        touch(getenv('APP_VAR') . '/waiting');
        try {
            sleep(1_000);
        } finally {
            touch(getenv('APP_VAR') . '/ended');
        }
    });
    Route::get('/fail', static fn() => throw new RuntimeException('on purpose'));
    Route::get('/leave', static fn() => DB::transaction(static function (): void {
        DB::statement('CREATE TABLE leavings (id INT)');
        exit('left');
    }));
    Route::get('/begin', static function (): string {
        DB::beginTransaction();
        DB::statement('CREATE TABLE leavings (id INT)');

        return 'begun';
    });
    Route::get('/dd', static fn() => dd(['dumped' => $_GET['n']]));
});

return $app;
