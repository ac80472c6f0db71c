<?php

declare(strict_types=1);

/*
 * As much of laravel/octane as its worker has for a request, and its commands for a server, for installations without it. The listeners that
 * prepare the application for a request are in the gateway.
 */

namespace Laravel\Octane\Contracts {
    use Illuminate\Foundation\Application;
    use Illuminate\Http\Request;
    use Laravel\Octane\OctaneResponse;
    use Laravel\Octane\RequestContext;

    interface Client
    {
        public function marshalRequest(RequestContext $context): array;

        public function respond(RequestContext $context, OctaneResponse $response): void;

        public function error(\Throwable $e, Application $app, Request $request, RequestContext $context): void;
    }

    interface ServerProcessInspector
    {
        public function serverIsRunning(): bool;

        public function reloadServer(): void;

        public function stopServer(): bool;
    }
}

namespace Laravel\Octane {
    use Illuminate\Container\Container;
    use Illuminate\Contracts\Debug\ExceptionHandler;
    use Illuminate\Contracts\Http\Kernel;
    use Illuminate\Foundation\Application;
    use Illuminate\Foundation\Bootstrap\RegisterProviders;
    use Illuminate\Foundation\Bootstrap\SetRequestForConsole;
    use Illuminate\Http\Request;
    use Illuminate\Support\Facades\Facade;
    use Symfony\Component\HttpFoundation\Response;

    final class RequestContext
    {
    }

    final class OctaneResponse
    {
        public function __construct(public Response $response, public ?string $outputBuffer = null)
        {
        }
    }

    final class CurrentApplication
    {
        public static function set(Application $app): void
        {
            $app->instance('app', $app);
            $app->instance(Container::class, $app);
            Container::setInstance($app);
            Facade::clearResolvedInstances();
            Facade::setFacadeApplication($app);
        }
    }

    final class ApplicationFactory
    {
        public function __construct(private readonly string $basePath)
        {
        }

        /** @param array<string, object> $initialInstances */
        public function createApplication(array $initialInstances = []): Application
        {
            $app = require "$this->basePath/bootstrap/app.php";
            foreach ($initialInstances as $key => $value) {
                $app->instance($key, $value);
            }
            $kernel = $app->make(Kernel::class);
            $bootstrappers = (new \ReflectionMethod($kernel, 'bootstrappers'))->invoke($kernel);
            \array_splice($bootstrappers, (int) \array_search(RegisterProviders::class, $bootstrappers, true), 0, [SetRequestForConsole::class]);
            $app->bootstrapWith($bootstrappers);
            $app->loadDeferredProviders();
            foreach (['auth', 'cookie', 'encrypter', 'files', 'log', 'router', 'routes', 'session', 'translator', 'url', 'view'] as $service) {
                $app->bound($service) && $app->make($service);
            }

            return $app;
        }
    }

    final class ApplicationGateway
    {
        public function __construct(Application $app, private readonly Application $sandbox)
        {
        }

        public function handle(Request $request): Response
        {
            $kernel = $this->sandbox->make(Kernel::class);
            $kernel->setApplication($this->sandbox);
            $this->sandbox->make('router')->setContainer($this->sandbox);
            $this->sandbox->make('auth')->setApplication($this->sandbox);
            $this->sandbox->make('auth')->forgetGuards();
            $this->sandbox->instance('request', $request);

            return $kernel->handle($request);
        }

        public function terminate(Request $request, Response $response): void
        {
            $this->sandbox->make(Kernel::class)->terminate($request, $response);
        }
    }

    class Worker
    {
        /** @var list<callable> */
        protected $requestHandledCallbacks = [];

        /** @var Application */
        protected $app;

        public function __construct(protected ApplicationFactory $appFactory, protected Contracts\Client $client)
        {
        }

        public function boot(): void
        {
            $this->app = $this->appFactory->createApplication([Contracts\Client::class => $this->client]);
        }

        public function application(): Application
        {
            return $this->app;
        }

        protected function handleWorkerError(\Throwable $e, Application $app, Request $request, RequestContext $context, bool $hasResponded): void
        {
            $hasResponded || $this->client->error($e, $app, $request, $context);
            $app->make(ExceptionHandler::class)->report($e);
        }

        protected function invokeRequestHandledCallbacks($request, $response, $sandbox): void
        {
            foreach ($this->requestHandledCallbacks as $callback) {
                $callback($request, $response, $sandbox);
            }
        }
    }
}
