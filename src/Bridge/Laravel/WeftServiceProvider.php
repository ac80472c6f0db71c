<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel;

use Illuminate\Database\Connection;
use Illuminate\Database\DatabaseManager;
use Illuminate\Queue\QueueManager;
use Illuminate\Support\ServiceProvider;
use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Laravel\Console\ServeCommand;
use Weft\Bridge\Laravel\Console\WorkCommand;
use Weft\Bridge\Laravel\Database\Connector;
use Weft\Bridge\Laravel\Database\SQLiteConnection;
use Weft\Bridge\Laravel\Internal\DsnConnections;
use Weft\Bridge\Laravel\Internal\Octane;
use Weft\Bridge\Laravel\Queue\WeftConnector;

/**
 * Adds Weft to a Laravel application: the server (`artisan weft:serve`), Eloquent on Weft's pools, the queue driver `weft`. Composer
 * registers it; without Composer name it in `config/app.php`. `docs/guides/laravel.md` has its configuration.
 */
final class WeftServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->mergeConfigFrom(__DIR__ . '/config/weft.php', 'weft');
        $this->app->singleton(Connector::class, static fn($app): Connector => new Connector((array) $app->make('config')->get('weft.database.pool', [])));
        if (\extension_loaded('weft') && Setting::boolean('"enabled" of "database" in config/weft.php (WEFT_DATABASE)', Setting::given($this->app->make('config')->get('weft.database.enabled')) ?? true)) {
            foreach (['pgsql', 'mysql', 'mariadb', 'sqlite'] as $driver) {
                $this->app->bind("db.connector.$driver", static fn($app): Connector => $app->make(Connector::class));
            }
            if (Connection::getResolver('sqlite') === null) {
                Connection::resolverFor('sqlite', static fn(mixed $pdo, string $database, string $prefix, array $config): Connection => new SQLiteConnection($pdo, $database, $prefix, $config));
            }
        }
        $this->app->resolving('db', static function (DatabaseManager $manager, $app): void {
            $manager->extend('weft', static fn(array $config, string $name): Connection => (new DsnConnections($app, $app->make(Connector::class)))->make($config, $name));
        });
        $this->app->resolving('queue', static function (QueueManager $queues, $app): void {
            $queues->addConnector('weft', static fn(): WeftConnector => new WeftConnector($app));
        });
        Octane::register($this->app);
    }

    public function boot(): void
    {
        if ($this->app->runningInConsole()) {
            $this->publishes([__DIR__ . '/config/weft.php' => $this->app->configPath('weft.php')], 'weft-config');
            $this->commands([ServeCommand::class, WorkCommand::class]);
        }
    }
}
