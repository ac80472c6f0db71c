<?php

declare(strict_types=1);

namespace Weft\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Weft\Http\Internal\Form;
use Weft\Http\Internal\ServerParameters;

/**
 * Lets a PSR-15 application answer: `$app->http('0.0.0.0:8080')->fallback(new PsrHandler($application, $psr17, $psr17))`.
 *
 * The application gets PSR-7 messages made by the PSR-17 factories it is used to; the names of a route are attributes. The
 * request's body is read first. The body of the answer is streamed unless its size is known and at most 64 KiB.
 */
final class PsrHandler
{
    /** Bytes of an answer that are read as one chunk. */
    private const CHUNK = 65_536;

    private readonly ?UploadedFileFactoryInterface $files;

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface $application
     * @param UploadedFileFactoryInterface|null $files makes what was uploaded; by default `$streams`, where it can. Without one
     *     the application sees no uploads.
     */
    public function __construct(
        private readonly RequestHandlerInterface|\Closure $application,
        private readonly ServerRequestFactoryInterface $requests,
        private readonly StreamFactoryInterface $streams,
        ?UploadedFileFactoryInterface $files = null,
    ) {
        $this->files = $files ?? ($streams instanceof UploadedFileFactoryInterface ? $streams : null);
    }

    public function __invoke(Request $request): Response
    {
        try {
            $message = $this->message($request);
        } catch (\InvalidArgumentException $refused) {
            // The application's PSR-7 library is stricter than HTTP.
            throw new BadRequestException("400 Bad Request: {$refused->getMessage()}", previous: $refused);
        }
        $answer = $this->application instanceof \Closure ? ($this->application)($message) : $this->application->handle($message);
        $headers = $answer->getHeaders();
        unset($headers['Transfer-Encoding'], $headers['transfer-encoding']);

        return new Response($answer->getStatusCode(), $headers, self::body($answer->getBody()));
    }

    private function message(Request $request): ServerRequestInterface
    {
        $query = $request->queryString();
        $target = $request->path() . ($query === '' ? '' : "?$query");
        $message = $this->requests
            ->createServerRequest($request->method(), "{$request->scheme()}://{$request->host()}$target", ServerParameters::of($request))
            ->withProtocolVersion($request->protocol())
            ->withQueryParams($request->queryParameters())
            ->withCookieParams($request->cookies());
        foreach ($request->headers() as $name => $values) {
            $message = $message->withHeader((string) $name, $values);
        }
        foreach ($request->parameters as $name => $value) {
            $message = $message->withAttribute($name, $value);
        }
        if (Form::isMultipart($request)) {
            $message = $message->withParsedBody($request->form());

            return $this->files === null ? $message : $message->withUploadedFiles($this->uploads($request, $this->files));
        }
        $message = $message->withBody($this->streams->createStream($request->body()));

        return self::isForm($request) ? $message->withParsedBody($request->form()) : $message;
    }

    /** @return array<array-key, mixed> */
    private function uploads(Request $request, UploadedFileFactoryInterface $factory): array
    {
        $files = $request->parsedForm()->tree();
        \array_walk_recursive($files, function (Upload &$file) use ($factory): void {
            $stream = $this->streams->createStreamFromFile($file->path());
            $file = $factory->createUploadedFile($stream, $file->size, \UPLOAD_ERR_OK, $file->name, $file->type);
        });

        /** @var array<array-key, mixed> $files */
        return $files;
    }

    private static function isForm(Request $request): bool
    {
        return \str_starts_with(\strtolower($request->header('content-type') ?? ''), 'application/x-www-form-urlencoded');
    }

    /** @return string|\Closure(BodyWriter): void */
    private static function body(StreamInterface $body): string|\Closure
    {
        $size = $body->getSize();
        if ($size !== null && $size <= self::CHUNK) {
            return (string) $body;
        }

        return static function (BodyWriter $writer) use ($body): void {
            if ($body->isSeekable()) {
                $body->rewind();
            }
            while (!$body->eof()) {
                $chunk = $body->read(self::CHUNK);
                if ($chunk !== '') {
                    $writer->write($chunk);
                }
            }
        };
    }
}
