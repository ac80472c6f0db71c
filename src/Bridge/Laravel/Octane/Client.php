<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Octane;

use Illuminate\Foundation\Application;
use Illuminate\Http\Request;
use Laravel\Octane\Contracts\Client as ClientContract;
use Laravel\Octane\OctaneResponse;
use Laravel\Octane\RequestContext;
use Symfony\Component\HttpFoundation\Response;

/**
 * Gives requests to Octane's worker and takes its responses: PHP's superglobals, which are those of the request, and {@see Instance}. Output of
 * the application is in the output buffer of the request, which Weft sends before the response.
 */
final class Client implements ClientContract
{
    private ?Response $response = null;

    private ?\Throwable $failure = null;

    /** @return array{Request, RequestContext} */
    public function marshalRequest(RequestContext $context): array
    {
        return [Request::capture(), $context];
    }

    public function respond(RequestContext $context, OctaneResponse $response): void
    {
        $this->response = $response->response;
    }

    public function error(\Throwable $e, Application $app, Request $request, RequestContext $context): void
    {
        $this->failure = $e;
    }

    /**
     * The response to the last request.
     *
     * @throws \Throwable what the application threw instead
     */
    public function take(): Response
    {
        [$response, $failure] = [$this->response, $this->failure];
        [$this->response, $this->failure] = [null, null];

        return $failure === null && $response !== null ? $response : throw $failure ?? new \LogicException('Octane has handled the request and given no response');
    }
}
