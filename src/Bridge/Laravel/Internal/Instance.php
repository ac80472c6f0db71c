<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Bootstrap\RegisterProviders;
use Illuminate\Foundation\Bootstrap\SetRequestForConsole;
use Illuminate\Http\Request;
use Symfony\Component\HttpFoundation\Response as SymfonyResponse;
use Weft\Bridge\Internal\SymfonyResponses;
use Weft\Http\Response;

/**
 * One booted application, which handles one request at a time in a realm of its own.
 *
 * Each request, and each job, is handled by a clone of the application, as Laravel Octane does it: what is bound or resolved meanwhile is
 * gone afterwards. Services that were resolved while the application booted are shared by the requests, and {@see Reset} prepares them.
 *
 * @internal
 */
final class Instance implements Served
{
    /** Services that closures of Laravel's providers take from the application they were made for: it and its clones must have the same. */
    private const SHARED = [
        'auth', 'cache', 'cache.store', 'config', 'cookie', 'db', 'db.factory', 'db.transactions', 'encrypter', 'files', 'hash', 'log', 'router', 'routes',
        'session', 'session.store', 'translator', 'url', 'view',
    ];

    private readonly Reset $reset;

    private ?Application $clone = null;

    private ?Request $request = null;

    private ?SymfonyResponse $answer = null;

    private function __construct(private readonly Application $application)
    {
        $this->reset = new Reset($application);
    }

    /**
     * Makes and boots the application.
     *
     * @param string $base the directory of the application
     */
    public static function boot(string $base): self
    {
        // Laravel asks for it: this is a server, though PHP runs on the command line.
        $_ENV['APP_RUNNING_IN_CONSOLE'] = 'false';
        $application = require \is_file("$base/.laravel/app.php") ? "$base/.laravel/app.php" : "$base/bootstrap/app.php";
        if (!$application instanceof Application) {
            throw new \Error("$base/bootstrap/app.php returned " . \get_debug_type($application) . ', it must return the application');
        }
        $kernel = $application->make(Kernel::class);
        /** @var list<class-string> $bootstrappers */
        $bootstrappers = (new \ReflectionMethod($kernel, 'bootstrappers'))->invoke($kernel);
        $at = \array_search(RegisterProviders::class, $bootstrappers, true);
        // Providers may ask for a request before there is one.
        \array_splice($bootstrappers, $at === false ? \count($bootstrappers) : $at, 0, [SetRequestForConsole::class]);
        $application->bootstrapWith($bootstrappers);
        $application->loadDeferredProviders();
        CancellationHandler::install($application);
        foreach (self::SHARED as $service) {
            $application->bound($service) && $application->make($service);
        }

        return new self($application);
    }

    /** Handles the request that PHP's superglobals describe. */
    public function handle(): Response
    {
        $this->request = $request = Request::capture();
        $clone = $this->begin();
        $clone->instance('request', $request);
        $this->application->instance('request', $request);
        $this->answer = $clone->make(Kernel::class)->handle($request);

        return SymfonyResponses::convert($this->answer);
    }

    /** Runs what is to be done when the response has been sent. */
    public function terminate(): void
    {
        if ($this->clone === null || $this->request === null || $this->answer === null) {
            return;
        }
        $this->clone->make(Kernel::class)->terminate($this->request, $this->answer);
        $route = $this->request->route();
        \is_object($route) && \method_exists($route, 'flushController') && $route->flushController();
    }

    /**
     * Runs something else than a request, such as a job.
     *
     * @template T
     *
     * @param \Closure(Application): T $work
     *
     * @return T
     */
    public function run(\Closure $work): mixed
    {
        return $work($this->begin());
    }

    /** Forgets the request. */
    public function reset(): void
    {
        $clone = $this->clone;
        [$this->clone, $this->request, $this->answer] = [null, null, null];
        $this->reset->after();
        $clone?->flush();
        Reset::makeCurrent($this->application);
    }

    public function close(): void
    {
        Reset::disconnect($this->application);
    }

    private function begin(): Application
    {
        $this->clone = $clone = clone $this->application;
        Reset::makeCurrent($clone);
        $this->reset->before($clone);

        return $clone;
    }
}
