<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Carbon\Carbon;
use Illuminate\Auth\Access\Gate;
use Illuminate\Config\Repository;
use Illuminate\Broadcasting\BroadcastManager;
use Illuminate\Cache\CacheManager;
use Illuminate\Contracts\Auth\Access\Gate as GateContract;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Contracts\Pipeline\Hub;
use Illuminate\Container\Container;
use Illuminate\Database\Connection;
use Illuminate\Foundation\Application;
use Illuminate\Log\LogManager;
use Illuminate\Notifications\ChannelManager;
use Illuminate\Pagination\PaginationState;
use Illuminate\Routing\RouteUrlGenerator;
use Illuminate\Support\Facades\Facade;
use Illuminate\Support\Manager;
use Illuminate\Support\Once;
use Illuminate\Support\Str;
use Illuminate\Translation\Translator;
use Weft\Bridge\Laravel\Database\Pdo;
use Weft\Http\Internal\KeptStatics;

/**
 * Prepares the services that an application has resolved while it booted for a request, and cleans them after it, so that the next request
 * finds nothing of it.
 *
 * @internal
 */
final class Reset
{
    /** Services that make others by the application they were given; with what they have made for the last request. */
    private const MANAGERS = [
        'auth' => ['setApplication', 'forgetGuards'],
        'cache' => ['setApplication'],
        'db' => ['setApplication'],
        'filesystem' => ['setApplication'],
        'hash' => ['setContainer'],
        'log' => ['setApplication'],
        'queue' => ['setApplication'],
        'router' => ['setContainer'],
        'session' => ['setContainer'],
        'validator' => ['setContainer'],
        'view' => ['setContainer'],
        'mail.manager' => ['setApplication', 'forgetMailers'],
        Kernel::class => ['setApplication'],
        GateContract::class => ['setContainer'],
        Gate::class => ['setContainer'],
        BroadcastManager::class => ['setApplication'],
        ChannelManager::class => ['setContainer', 'forgetDrivers'],
        Hub::class => ['setContainer'],
        // Packages of Laravel's own.
        'Laravel\Socialite\Contracts\Factory' => ['setContainer', 'forgetDrivers'],
        'Laravel\Scout\EngineManager' => ['forgetEngines'],
        'Livewire\LivewireManager' => ['flushState'],
        'Inertia\ResponseFactory' => ['flushShared'],
    ];

    /** Properties of a connection that a request may change for itself. */
    private const CONNECTION = ['database', 'events', 'beforeExecutingCallbacks', 'beforeStartingTransaction', 'queryDurationHandlers'];

    /** @var list<array{object, array<string, mixed>}> services, and their properties after the application has booted */
    private array $booted = [];

    private readonly string $dates;

    private readonly KeptStatics $settings;

    private readonly ?string $fallback;

    /** The configuration of the request. */
    private ?Repository $config = null;

    /**
     * Connections that the boot has opened: the prefix of their tables, whether their queries are logged, and {@see CONNECTION}.
     *
     * @var \WeakMap<Connection, array{string, bool, array<string, mixed>}>
     */
    private readonly \WeakMap $connections;

    /** @var array{object, array<string, mixed>}|null the finder of views, and its properties after the boot */
    private ?array $finder = null;

    public function __construct(private readonly Application $application)
    {
        $this->dates = Carbon::getLocale();
        $this->settings = Statics::settings();
        $translator = $application->resolved('translator') ? $application->make('translator') : null;
        $this->fallback = $translator instanceof Translator ? $translator->getFallback() : null;
        $this->connections = new \WeakMap();
        foreach (self::connections($application) as $connection) {
            $this->connections[$connection] = [$connection->getTablePrefix(), $connection->logging(), self::propertiesOfConnection($connection)];
        }
        // Forced schemes and roots, default parameters, shared variables and composers, callbacks that were added.
        foreach (['url', 'redirect', 'view', 'cookie'] as $name) {
            $application->resolved($name) && $this->remember($application->make($name));
        }
        if ($application->resolved('auth')) {
            $this->remember($application->make('auth'), ['userResolver']);
        }
        if ($application->resolved('hash')) {
            $hash = $application->make('hash');
            $this->remember($hash, ['drivers']);
            foreach ($hash instanceof Manager ? $hash->getDrivers() : [] as $hasher) {
                $this->remember($hasher);
            }
        }
        if ($application->resolved('view')) {
            $finder = $application->make('view')->getFinder();
            $this->finder = [$finder, self::properties($finder)];
        }
    }

    /** Makes facades and `app()` use an application. */
    public static function makeCurrent(Application $application): void
    {
        $application->instance('app', $application);
        $application->instance(Container::class, $application);
        Container::setInstance($application);
        Facade::clearResolvedInstances();
        Facade::setFacadeApplication($application);
    }

    public function before(Application $clone): void
    {
        $clone->instance('config', $this->config = clone $this->application->make('config'));
        foreach (self::MANAGERS as $name => $methods) {
            if (!$clone->resolved($name)) {
                continue;
            }
            $service = $clone->make($name);
            foreach ($methods as $method) {
                \method_exists($service, $method) && $service->{$method}(...(\str_starts_with($method, 'set') ? [$clone] : []));
            }
            self::configure($service, $clone);
        }
        if ($clone->resolved('session')) {
            $store = $clone->make('session')->driver();
            $store->flush();
            $store->regenerate();
            \method_exists($store->getHandler(), 'setContainer') && $store->getHandler()->setContainer($clone);
        }
        $clone->resolved('view') && $clone->make('view')->share('app', $clone);
        \class_exists(PaginationState::class) && PaginationState::resolveUsing($clone);
    }

    public function after(): void
    {
        $application = $this->application;
        self::release($application);
        foreach (self::connections($application) as $connection) {
            [$prefix, $isLogging, $properties] = $this->connections[$connection]
                ?? [(string) $connection->getConfig('prefix'), false, $this->propertiesOfNewConnection($connection)];
            $connection->getTablePrefix() === $prefix || $connection->setTablePrefix($prefix);
            $isLogging ? $connection->enableQueryLog() : $connection->disableQueryLog();
            self::restore($connection, $properties);
        }
        foreach ($this->booted as [$service, $properties]) {
            self::restore($service, $properties);
        }
        $this->restoreFinder();
        $locale = $application->make('config')->get('app.locale');
        if (\is_string($locale) && $application->resolved('translator') && $application->make('translator')->getLocale() !== $locale) {
            $application->setLocale($locale);
        }
        $this->fallback === null || $application->make('translator')->setFallback($this->fallback);
        $this->settings->putBack();
        Carbon::getLocale() === $this->dates || Carbon::setLocale($this->dates);
        if ($application->resolved('log')) {
            $this->forgetLogContext();
            $this->forgetLogChannels();
        }
        $this->config = null;
        $application->forgetInstance('auth.driver');
        $application->resolved('auth') && $application->make('auth')->forgetGuards();
        $application->make('config')->get('cache.stores.array') !== null && $application->make('cache')->store('array')->flush();
        if ($application->resolved('view.engine.resolver') && \method_exists($engines = $application->make('view.engine.resolver'), 'forget')) {
            $engines->forget('blade');
            $engines->forget('php');
        }
        \method_exists($application, 'forgetScopedInstances') && $application->forgetScopedInstances();
        \method_exists(Str::class, 'flushCache') && Str::flushCache();
        \class_exists(Once::class) && Once::flush();
        foreach ((array) $application->make('config')->get('weft.flush', []) as $service) {
            $application->forgetInstance((string) $service);
        }
    }

    /** Ends transactions that were left open, and gives back the connections of the pools. */
    public static function release(Application $application): void
    {
        foreach (self::connections($application) as $connection) {
            self::releaseConnection($connection);
        }
    }

    /**
     * Closes the connections of an application that is not used again. It refers to itself, so they would stay open, in the transactions in which
     * it has left them, until PHP collects cycles.
     */
    public static function disconnect(Application $application): void
    {
        foreach (self::connections($application) as $connection) {
            self::resetSessions($connection);
            $connection->disconnect();
        }
    }

    /**
     * Gives a service the configuration of the request: with the one that all requests begin with, `Session::setDefaultDriver()` of a request would
     * hold for the later ones.
     */
    private static function configure(object $service, Application $clone): void
    {
        if ($service instanceof Manager) {
            (fn() => $this->config = $clone->make('config'))->bindTo($service, Manager::class)();
        } elseif (($service instanceof LogManager || $service instanceof CacheManager) && !\method_exists($service, 'setApplication')) {
            // Laravel 8 has no method for it.
            (fn() => $this->app = $clone)->bindTo($service, $service instanceof LogManager ? LogManager::class : CacheManager::class)();
        }
    }

    /** @param list<string>|null $names of the properties that are put back; null: all */
    private function remember(object $service, ?array $names = null): void
    {
        $this->booted[] = [$service, self::named(self::properties($service), $names)];
    }

    /** @return array<string, Connection> that are open */
    private static function connections(Application $application): array
    {
        return $application->resolved('db') ? $application->make('db')->getConnections() : [];
    }

    private static function releaseConnection(Connection $connection): void
    {
        // Not level by level: a session that has ended knows no savepoint.
        if ($connection->transactionLevel() > 0) {
            foreach (self::sessions($connection) as $pdo) {
                $pdo->adopt();
            }
            $connection->rollBack(0);
        }
        self::resetSessions($connection);
        $connection->flushQueryLog();
        $connection->forgetRecordModificationState();
        foreach (['resetTotalQueryDuration', 'allowQueryDurationHandlersToRunAgain'] as $method) {
            \method_exists($connection, $method) && $connection->{$method}();
        }
    }

    /** @return array<string, mixed> what a request may change, by class and name */
    private static function propertiesOfConnection(Connection $connection): array
    {
        return self::named(self::properties($connection), self::CONNECTION);
    }

    /**
     * @param array<string, mixed> $properties by class and name
     * @param list<string>|null $names null: all
     *
     * @return array<string, mixed>
     */
    private static function named(array $properties, ?array $names): array
    {
        $isNamed = static fn(string $name): bool => $names === null || \in_array(\explode('::', $name)[1], $names, true);

        return \array_filter($properties, $isNamed, \ARRAY_FILTER_USE_KEY);
    }

    /** @return array<string, mixed> of one that a request has opened */
    private function propertiesOfNewConnection(Connection $connection): array
    {
        $properties = [];
        foreach (self::propertiesOfConnection($connection) as $name => $value) {
            $properties[$name] = match (\explode('::', $name)[1]) {
                'database' => (string) $connection->getConfig('database'),
                'events' => $this->application->bound('events') ? $this->application->make('events') : null,
                default => [],
            };
        }

        return $properties;
    }

    /** The views that it has found stay found unless the request has changed where it looks for them. */
    private function restoreFinder(): void
    {
        if ($this->finder === null) {
            return;
        }
        [$finder, $properties] = $this->finder;
        $isPlace = static fn(string $name): bool => !\str_ends_with($name, '::views');
        if (\array_filter(self::properties($finder), $isPlace, \ARRAY_FILTER_USE_KEY) !== \array_filter($properties, $isPlace, \ARRAY_FILTER_USE_KEY)) {
            self::restore($finder, $properties);
        }
    }

    private static function resetSessions(Connection $connection): void
    {
        foreach (self::sessions($connection) as $pdo) {
            $pdo->reset();
        }
    }

    /** @return list<Pdo> that are open and Weft's */
    private static function sessions(Connection $connection): array
    {
        $sessions = [];
        // Since Laravel 13 a connection may have one that passes by a pooler of the server.
        foreach (['getRawPdo', 'getRawReadPdo', 'getRawDirectPdo'] as $method) {
            $pdo = \method_exists($connection, $method) ? $connection->{$method}() : null;
            $pdo instanceof Pdo && $sessions[] = $pdo;
        }

        return $sessions;
    }

    /** Channels that were made while the request had another configuration of logs. */
    private function forgetLogChannels(): void
    {
        $log = $this->application->make('log');
        if ($log instanceof LogManager && $this->config !== null && $this->config->get('logging') !== $this->application->make('config')->get('logging')) {
            (fn() => $this->channels = [])->bindTo($log, LogManager::class)();
        }
    }

    private function forgetLogContext(): void
    {
        $log = $this->application->make('log');
        foreach (['flushSharedContext', 'withoutContext'] as $method) {
            \method_exists($log, $method) && $log->{$method}();
        }
        foreach (\method_exists($log, 'getChannels') ? $log->getChannels() : [] as $channel) {
            \method_exists($channel, 'withoutContext') && $channel->withoutContext();
            $logger = $channel->getLogger();
            $logger instanceof \Monolog\ResettableInterface && $logger->reset();
        }
    }

    /** @return array<string, mixed> by class and name */
    private static function properties(object $service): array
    {
        $properties = [];
        for ($class = new \ReflectionObject($service); $class !== false; $class = $class->getParentClass()) {
            foreach ($class->getProperties() as $property) {
                if (!$property->isStatic() && $property->isInitialized($service) && !$property->isReadOnly()) {
                    $value = $property->getValue($service);
                    // It has the default parameters of `URL::defaults()`.
                    $properties["{$class->getName()}::{$property->getName()}"] = $value instanceof RouteUrlGenerator ? clone $value : $value;
                }
            }
        }

        return $properties;
    }

    /** @param array<string, mixed> $properties */
    private static function restore(object $service, array $properties): void
    {
        foreach ($properties as $name => $value) {
            [$class, $property] = \explode('::', $name);
            $value = $value instanceof RouteUrlGenerator ? clone $value : $value;
            (function () use ($property, $value): void {
                $this->{$property} = $value;
            })->bindTo($service, $class)();
        }
    }
}
