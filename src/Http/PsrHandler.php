<?php

declare(strict_types=1);

namespace Weft\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Weft\Http\Internal\Psr\Messages;

/**
 * Lets a PSR-15 application answer: `$app->http('0.0.0.0:8080')->fallback(new PsrHandler($application, $psr17, $psr17))`.
 *
 * The application gets PSR-7 messages made by the PSR-17 factories it is used to; the names of a route are attributes. The
 * request's body is read first. The body of the answer is streamed unless its size is known and at most 64 KiB.
 */
final class PsrHandler
{
    private readonly Messages $messages;

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface $application
     * @param UploadedFileFactoryInterface|null $files makes what was uploaded; by default `$streams`, where it can. Without one
     *     the application sees no uploads.
     */
    public function __construct(
        private readonly RequestHandlerInterface|\Closure $application,
        ServerRequestFactoryInterface $requests,
        StreamFactoryInterface $streams,
        ?UploadedFileFactoryInterface $files = null,
    ) {
        $this->messages = new Messages($requests, $streams, $files ?? ($streams instanceof UploadedFileFactoryInterface ? $streams : null));
    }

    public function __invoke(Request $request): Response
    {
        $message = $this->messages->request($request);
        $answer = $this->application instanceof \Closure ? ($this->application)($message) : $this->application->handle($message);
        $headers = $answer->getHeaders();
        unset($headers['Transfer-Encoding'], $headers['transfer-encoding']);

        return new Response($answer->getStatusCode(), $headers, Messages::body($answer->getBody()));
    }
}
