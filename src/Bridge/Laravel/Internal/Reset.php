<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Carbon\Carbon;
use Illuminate\Auth\Access\Gate;
use Illuminate\Config\Repository;
use Illuminate\Broadcasting\BroadcastManager;
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

    /** @var list<array{object, array<string, mixed>}> services, and their properties after the application has booted */
    private array $booted = [];

    private readonly string $dates;

    private readonly KeptStatics $settings;

    private readonly ?string $fallback;

    /** The configuration of the request. */
    private ?Repository $config = null;

    /** @var \WeakMap<Connection, array{string, bool}> connections that the boot has opened: the prefix of their tables, and whether their queries are logged */
    private readonly \WeakMap $connections;

    public function __construct(private readonly Application $application)
    {
        $this->dates = Carbon::getLocale();
        $this->settings = Statics::settings();
        $translator = $application->resolved('translator') ? $application->make('translator') : null;
        $this->fallback = $translator instanceof Translator ? $translator->getFallback() : null;
        $this->connections = new \WeakMap();
        foreach (self::connections($application) as $connection) {
            $this->connections[$connection] = [$connection->getTablePrefix(), $connection->logging()];
        }
        // Forced schemes and roots, default parameters, shared variables and composers, callbacks that were added.
        foreach (['url', 'redirect', 'view', 'cookie'] as $name) {
            if ($application->resolved($name)) {
                $service = $application->make($name);
                $this->booted[] = [$service, self::properties($service)];
            }
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
        }
        if ($clone->resolved('log') && ($log = $clone->make('log')) instanceof LogManager && !\method_exists($log, 'setApplication')) {
            // Laravel 8 has no method for it: `Log::setDefaultDriver()` would change the configuration that all requests begin with.
            (fn() => $this->app = $clone)->bindTo($log, LogManager::class)();
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
            [$prefix, $isLogging] = $this->connections[$connection] ?? [(string) $connection->getConfig('prefix'), false];
            $connection->getTablePrefix() === $prefix || $connection->setTablePrefix($prefix);
            $isLogging ? $connection->enableQueryLog() : $connection->disableQueryLog();
        }
        foreach ($this->booted as [$service, $properties]) {
            self::restore($service, $properties);
        }
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
