<?php

declare(strict_types=1);

// The server of `bench/state/run` for Laravel. STATE_VAR is its directory, STATE_SLOTS the number of applications, STATE_SHARED=1 lets all
// requests run in one application, as a server would do that does not isolate them.

use Illuminate\Contracts\Console\Kernel;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Foundation\Application;
use Illuminate\Support\Facades\Schema;
use Weft\App;
use Weft\Bridge\Laravel\Internal\Applications;
use Weft\Bridge\Laravel\Internal\Instance;
use Weft\Http\ApplicationPool;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Log\StreamLogger;

require __DIR__ . '/../../autoload.php';
require __DIR__ . '/../autoload.php';
require_once '/usr/share/php/Illuminate/autoload.php';
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Weft\\Bench\\State\\Laravel\\')) {
        require __DIR__ . '/laravel/' . substr($class, strlen('Weft\\Bench\\State\\Laravel\\')) . '.php';
    }
});

$directory = (string) getenv('STATE_VAR');
foreach (['framework/views', 'logs'] as $name) {
    mkdir("$directory/$name", recursive: true);
}
$_ENV['APP_SERVICES_CACHE'] = "$directory/services.php";
$_ENV['APP_PACKAGES_CACHE'] = "$directory/packages.php";
/** @var Application $console */
$console = require __DIR__ . '/laravel/bootstrap/app.php';
$console->make(Kernel::class)->bootstrap();
restore_error_handler();
restore_exception_handler();
Weft\run(static function (): void {
    Schema::dropIfExists('state_visits');
    Schema::create('state_visits', static function (Blueprint $table): void {
        $table->string('request')->primary();
        $table->string('user');
    });
});
if (getenv('STATE_SHARED') === '1') {
    // Realms as well, so that header() and the superglobals are there, but static properties and the application are the same in all of them.
    // A reset between requests would only end the transactions of others: none of them would be answered.
    $shared = null;
    $instances = new ApplicationPool(
        static function () use (&$shared): Instance {
            return $shared ??= Instance::boot(__DIR__ . '/laravel');
        },
        (int) getenv('STATE_SLOTS'),
        60.0,
    );
    $handler = static fn(Request $request): Response => $instances->serve($request, static fn(Instance $instance): Response => $instance->handle());
} else {
    $handler = Applications::of($console, (int) getenv('STATE_SLOTS'), StreamLogger::fromEnvironment(), __DIR__ . '/laravel');
}
$app = new App();
$app->http((string) getenv('STATE_LISTEN'))->fallback($handler);
$app->run(static function (array $addresses): void {
    echo $addresses[0], "\n";
});
