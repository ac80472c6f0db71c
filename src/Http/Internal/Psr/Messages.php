<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Psr;

use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Weft\Http\BadRequestException;
use Weft\Http\BodyWriter;
use Weft\Http\Internal\Form;
use Weft\Http\Internal\ServerParameters;
use Weft\Http\Request;
use Weft\Http\Upload;

/**
 * Converts messages to PSR-7 and back.
 *
 * @internal
 */
final class Messages
{
    /** Bytes of a response that are read as one chunk. */
    private const CHUNK_BYTES = 65_536;

    public function __construct(
        private readonly ServerRequestFactoryInterface $requests,
        private readonly StreamFactoryInterface $streams,
        private readonly ?UploadedFileFactoryInterface $files,
    ) {
    }

    /**
     * Reads the body.
     *
     * @throws BadRequestException the PSR-7 library is stricter than HTTP
     */
    public function request(Request $request): ServerRequestInterface
    {
        try {
            return $this->message($request);
        } catch (\InvalidArgumentException $refused) {
            throw new BadRequestException("400 Bad Request: {$refused->getMessage()}", previous: $refused);
        }
    }

    private function message(Request $request): ServerRequestInterface
    {
        $query = $request->queryString();
        $target = $request->path() . ($query === '' ? '' : "?$query");
        $message = $this->requests
            ->createServerRequest($request->method(), "{$request->scheme()}://" . ServerParameters::hostOf($request) . $target, ServerParameters::of($request))
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

        return Form::isForm($request) ? $message->withParsedBody($request->form()) : $message;
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

    /** @return string|\Closure(BodyWriter): void */
    public static function body(StreamInterface $body): string|\Closure
    {
        $size = $body->getSize();
        if ($size !== null && $size <= self::CHUNK_BYTES) {
            return (string) $body;
        }

        return static function (BodyWriter $writer) use ($body): void {
            if ($body->isSeekable()) {
                $body->rewind();
            }
            while (!$body->eof()) {
                $chunk = $body->read(self::CHUNK_BYTES);
                if ($chunk !== '') {
                    $writer->write($chunk);
                }
            }
        };
    }
}
