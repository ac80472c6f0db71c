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
 *
 * The application handles one request at a time, in a realm ({@see ApplicationPool}), because it may keep state of the request; others
 * wait. An {@see ApplicationPool} in its place has several instances. `$isShared` lets all requests run in one application at once.
 */
final class PsrHandler
{
    private readonly Messages $messages;

    /** @var ApplicationPool<RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface>|null */
    private readonly ?ApplicationPool $applications;

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface|ApplicationPool<RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface> $application
     * @param UploadedFileFactoryInterface|null $files makes what was uploaded; by default `$streams`, where it can. Without one
     *     the application sees no uploads.
     * @param bool $isShared the application keeps no state of a request outside of its messages: no realm, and as many requests at a time
     *     as `Limits::$inFlight` says
     *
     * @throws \ValueError a pool that is shared: each of its instances has one request at a time
     */
    public function __construct(
        private readonly RequestHandlerInterface|\Closure|ApplicationPool $application,
        ServerRequestFactoryInterface $requests,
        StreamFactoryInterface $streams,
        ?UploadedFileFactoryInterface $files = null,
        bool $isShared = false,
    ) {
        if ($isShared && $application instanceof ApplicationPool) {
            throw new \ValueError("The instances of the pool \"$application->name\" have one request at a time: \$isShared needs one application");
        }
        $this->messages = new Messages($requests, $streams, $files ?? ($streams instanceof UploadedFileFactoryInterface ? $streams : null));
        $this->applications = match (true) {
            $isShared => null,
            $application instanceof ApplicationPool => $application,
            default => new ApplicationPool(static fn(): RequestHandlerInterface|\Closure => $application, 1),
        };
    }

    public function __invoke(Request $request): Response
    {
        $message = $this->messages->request($request);
        if ($this->applications === null) {
            return self::answer($this->application, $message);
        }

        return $this->applications->serve($request, static fn(RequestHandlerInterface|\Closure $application): Response => self::answer($application, $message));
    }

    private static function answer(RequestHandlerInterface|\Closure|ApplicationPool $application, ServerRequestInterface $message): Response
    {
        \assert(!$application instanceof ApplicationPool);
        $answer = $application instanceof \Closure ? $application($message) : $application->handle($message);
        $headers = $answer->getHeaders();
        unset($headers['Transfer-Encoding'], $headers['transfer-encoding']);

        return new Response($answer->getStatusCode(), $headers, Messages::body($answer->getBody()));
    }
}
