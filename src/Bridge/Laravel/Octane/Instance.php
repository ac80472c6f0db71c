<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Octane;

use Illuminate\Foundation\Application;
use Laravel\Octane\ApplicationFactory;
use Laravel\Octane\RequestContext;
use Weft\Bridge\Laravel\Internal\CancellationHandler;
use Weft\Bridge\Laravel\Internal\Reset;
use Weft\Bridge\Laravel\Internal\Served;
use Weft\Bridge\Internal\SymfonyResponses;
use Weft\Http\Response;

/**
 * An application that Octane's own worker prepares, with the listeners, `warm` and `flush` of `config/octane.php`.
 *
 * @internal
 */
final class Instance implements Served
{
    private readonly Client $client;

    private readonly Worker $worker;

    public function __construct(string $base)
    {
        $_ENV['APP_RUNNING_IN_CONSOLE'] = 'false';
        $this->client = new Client();
        $this->worker = new Worker(new ApplicationFactory($base), $this->client);
        $this->worker->boot();
        CancellationHandler::install($this->worker->application());
    }

    public function handle(): Response
    {
        [$request, $context] = $this->client->marshalRequest(new RequestContext());
        $this->worker->handle($request, $context);

        return SymfonyResponses::convert($this->client->take());
    }

    public function terminate(): void
    {
        $this->worker->terminateRequest();
    }

    public function run(\Closure $work): mixed
    {
        return $work($this->worker->application());
    }

    public function reset(): void
    {
        // That of the request has a database manager of its own where `warm` does not name it.
        Reset::release($this->worker->current());
        $this->worker->flush();
    }

    public function close(): void
    {
        Reset::disconnect($this->worker->current());
    }
}
