<?php

declare(strict_types=1);

namespace Weft\Http;

use Symfony\Component\HttpFoundation\File\UploadedFile;
use Symfony\Component\HttpFoundation\Request as SymfonyRequest;
use Symfony\Component\HttpFoundation\Response as SymfonyResponse;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\TerminableInterface;
use Weft\Http\Internal\Form;

/**
 * Lets a Symfony kernel answer: `$app->http('0.0.0.0:8080')->fallback(new SymfonyHandler($kernel))`.
 *
 * The kernel lives as long as the process, and several requests are in it at once wherever one of them waits: its services
 * must keep nothing of a request that another could find there (its RequestStack does). `Limits(inFlight: 1)` gives it one at a
 * time. A kernel that can be terminated is, before the answer leaves. What a StreamedResponse prints does not wait for the client.
 */
final class SymfonyHandler
{
    /**
     * @param HttpKernelInterface|\Closure(SymfonyRequest): SymfonyResponse $kernel a function for what is built on Symfony's
     *     messages and is no kernel: `$lumen->handle(...)`, or
     *     `fn ($request) => $laravel->handle(Illuminate\Http\Request::createFromBase($request))`
     */
    public function __construct(private readonly HttpKernelInterface|\Closure $kernel)
    {
    }

    public function __invoke(Request $request): Response
    {
        $message = self::message($request);
        $answer = $this->kernel instanceof \Closure ? ($this->kernel)($message) : $this->kernel->handle($message);
        if ($this->kernel instanceof TerminableInterface) {
            $this->kernel->terminate($message, $answer);
        }

        return new Response($answer->getStatusCode(), self::headers($answer), self::body($answer));
    }

    private static function message(Request $request): SymfonyRequest
    {
        $query = $request->queryString();
        $isMultipart = Form::isMultipart($request);
        $isForm = $isMultipart || \stripos($request->header('content-type') ?? '', 'application/x-www-form-urlencoded') === 0;
        $form = $isForm ? $request->form() : [];
        $server = [
            'REMOTE_ADDR' => $request->clientAddress() ?? '127.0.0.1',
            'REMOTE_PORT' => $request->clientPort(),
            'SERVER_PROTOCOL' => "HTTP/{$request->protocol()}",
        ];
        $uri = "{$request->scheme()}://{$request->host()}{$request->path()}" . ($query === '' ? '' : "?$query");
        $message = SymfonyRequest::create($uri, $request->method(), [], $request->cookies(), $isMultipart ? self::files($request) : [], $server, $request->body());
        $message->request->replace($form);
        // create() makes up some of its own.
        $message->headers->replace($request->headers());
        $message->attributes->replace($request->parameters);

        return $message;
    }

    /** @return array<array-key, mixed> */
    private static function files(Request $request): array
    {
        $files = $request->wholeForm()->tree();
        // As in Symfony's own tests: what PHP itself knows of uploads it does not know of these.
        \array_walk_recursive($files, static function (Upload &$file): void {
            $file = new UploadedFile($file->path(), $file->name, $file->type, \UPLOAD_ERR_OK, true);
        });

        return $files;
    }

    /** @return array<string, list<string>> */
    private static function headers(SymfonyResponse $answer): array
    {
        $headers = $answer->headers->all();
        unset($headers['transfer-encoding']);

        return \array_map(static fn(array $values): array => \array_map(\strval(...), $values), $headers);
    }

    /** What a streamed answer prints becomes pieces of the body. */
    private static function body(SymfonyResponse $answer): string|\Closure
    {
        if (!$answer instanceof StreamedResponse && $answer->getContent() !== false) {
            return $answer->getContent();
        }

        return static function (BodyWriter $writer) use ($answer): void {
            \ob_start(static function (string $piece) use ($writer): string {
                if ($piece !== '') {
                    $writer->queue($piece);
                }

                return '';
            }, 4_096);
            try {
                $answer->sendContent();
            } finally {
                \ob_end_flush();
            }
        };
    }
}
