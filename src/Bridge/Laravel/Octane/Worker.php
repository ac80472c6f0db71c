<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Octane;

use Illuminate\Foundation\Application;
use Illuminate\Http\Request;
use Laravel\Octane\ApplicationGateway;
use Laravel\Octane\CurrentApplication;
use Laravel\Octane\OctaneResponse;
use Laravel\Octane\RequestContext;
use Laravel\Octane\Worker as OctaneWorker;
use Weft\Runtime\Internal\Scheduler;

/**
 * Octane's worker, with a request in three steps. Octane's own clients send the response while `handle()` runs; Weft sends it afterwards,
 * and the application of the request, which Octane calls its sandbox, must be the current one until then.
 *
 * @internal
 */
final class Worker extends OctaneWorker
{
    private ?Application $sandbox = null;

    /** Terminates the request, whose response the client has. */
    private ?\Closure $terminate = null;

    /** Gives the client the response. The sandbox stays current. */
    public function handle(Request $request, RequestContext $context): void
    {
        CurrentApplication::set($sandbox = $this->sandbox = clone $this->app);
        $gateway = new ApplicationGateway($this->app, $sandbox);
        try {
            $response = $gateway->handle($request);
            $this->client->respond($context, new OctaneResponse($response));
        } catch (\Throwable $thrown) {
            $this->failed($thrown, $sandbox, $request, $context, false);

            return;
        }
        $this->terminate = function () use ($gateway, $request, $response, $context, $sandbox): void {
            try {
                $this->invokeRequestHandledCallbacks($request, $response, $sandbox);
                $gateway->terminate($request, $response);
            } catch (\Throwable $thrown) {
                $this->failed($thrown, $sandbox, $request, $context, true);
            }
        };
    }

    /** Terminates the request once its response has been sent. */
    public function terminateRequest(): void
    {
        $this->terminate === null || ($this->terminate)();
    }

    /** Forgets the request. */
    public function flush(): void
    {
        $this->sandbox?->flush();
        [$this->sandbox, $this->terminate] = [null, null];
        $this->app->make('view.engine.resolver')->forget('blade');
        $this->app->make('view.engine.resolver')->forget('php');
        CurrentApplication::set($this->app);
    }

    /** The sandbox during a request, else the application that it is a clone of. */
    public function current(): Application
    {
        return $this->sandbox ?? $this->application();
    }

    /** Octane's listeners report the exception, unless it is the cancellation of the request. */
    private function failed(\Throwable $thrown, Application $sandbox, Request $request, RequestContext $context, bool $hasResponded): void
    {
        $cancellation = Scheduler::cancellationIn($thrown);
        $cancellation === null ? $this->handleWorkerError($thrown, $sandbox, $request, $context, $hasResponded) : throw $cancellation;
    }
}
