<?php

declare(strict_types=1);

namespace Weft\Http;

use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Weft\Http\Internal\Psr\Messages;
use Weft\Http\Internal\ErrorPage;
use Weft\Http\Internal\Handlers\ReturnValue;
use Weft\Http\Internal\Handlers\UnusableResultException;

/**
 * Lets a PSR-15 middleware work around Weft's routes: `$routes->use(new PsrMiddleware($middleware, $psr17, $psr17, $psr17))`.
 *
 * The middleware gets a PSR-7 request with its body read, and may answer itself or change the response. Attributes that it sets are
 * those of {@see Request::attribute()} for what comes after it; other changes of the request are not passed on. An
 * {@see HttpException} of a handler is a response for it. Streams, files and events of a response pass by unless it replaces the body.
 */
final class PsrMiddleware
{
    private readonly Messages $messages;

    public function __construct(
        private readonly MiddlewareInterface $middleware,
        ServerRequestFactoryInterface $requests,
        private readonly StreamFactoryInterface $streams,
        private readonly ResponseFactoryInterface $responses,
    ) {
        $this->messages = new Messages($requests, $streams, $streams instanceof UploadedFileFactoryInterface ? $streams : null);
    }

    public function __invoke(Request $request, \Closure $next): mixed
    {
        $inner = $placeholder = null;
        $message = $this->messages->request($request);
        $answer = $this->middleware->process($message, self::handler(function (ServerRequestInterface $changed) use ($request, $next, &$inner, &$placeholder): ResponseInterface {
            foreach ($changed->getAttributes() as $name => $value) {
                $request->setAttribute((string) $name, $value);
            }
            $inner = self::response($request, $next);
            $placeholder = $this->streams->createStream(\is_string($inner->body) ? $inner->body : '');

            return $this->message($inner, $placeholder);
        }));
        $headers = $answer->getHeaders();
        unset($headers['Transfer-Encoding'], $headers['transfer-encoding']);
        // A body that cannot be a stream of PSR-7 is sent by Weft, if it is still the one.
        $body = $inner !== null && $answer->getBody() === $placeholder ? $inner->body : Messages::body($answer->getBody());

        return new Response($answer->getStatusCode(), $headers, $body);
    }

    /**
     * An anonymous class: a class of its own could not be loaded without the package of PSR-15.
     *
     * @param \Closure(ServerRequestInterface): ResponseInterface $handle
     */
    private static function handler(\Closure $handle): RequestHandlerInterface
    {
        return new class ($handle) implements RequestHandlerInterface {
            /** @param \Closure(ServerRequestInterface): ResponseInterface $handle */
            public function __construct(private readonly \Closure $handle)
            {
            }

            public function handle(ServerRequestInterface $request): ResponseInterface
            {
                return ($this->handle)($request);
            }
        };
    }

    private static function response(Request $request, \Closure $next): Response
    {
        try {
            $response = $next($request);
        } catch (HttpException $error) {
            return ErrorPage::ofException($error, $request);
        }
        try {
            return $response instanceof Response ? $response : ReturnValue::ofUndeclared($response);
        } catch (UnusableResultException $unusable) {
            throw $unusable->error(null);
        }
    }

    private function message(Response $response, StreamInterface $body): ResponseInterface
    {
        $message = $this->responses->createResponse($response->status)->withBody($body);
        foreach ($response->headers as $name => $value) {
            $message = $message->withHeader((string) $name, \is_array($value) ? $value : (string) $value);
        }

        return $message;
    }
}
