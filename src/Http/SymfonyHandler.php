<?php

declare(strict_types=1);

namespace Weft\Http;

use Psr\Log\LoggerInterface;
use Symfony\Component\HttpFoundation\Exception\RequestExceptionInterface;
use Symfony\Component\HttpFoundation\File\UploadedFile;
use Symfony\Component\HttpFoundation\Request as SymfonyRequest;
use Symfony\Component\HttpFoundation\Response as SymfonyResponse;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\TerminableInterface;
use Weft\Http\Internal\Form;
use Weft\Http\Internal\KernelPool;
use Weft\Http\Internal\ServerParameters;
use Weft\Log\StreamLogger;

/**
 * Serves a Symfony kernel: `$app->http('0.0.0.0:8080')->fallback(new SymfonyHandler($kernel))`.
 *
 * A kernel handles one request at a time; other requests wait. {@see SymfonyHandler::pool()} uses several kernels for as many
 * concurrent requests. A request that waits longer than `$wait` is answered 503.
 *
 * `terminate()` runs after the response has been handed to the connection; exceptions of it are logged. The kernel is busy until
 * `terminate()` returns. The output of a StreamedResponse is buffered: it does not wait for the client.
 */
final class SymfonyHandler
{
    /** Seconds that a request waits for a kernel. */
    private const BORROW_TIMEOUT = 5.0;

    private KernelPool $kernels;

    /**
     * @param HttpKernelInterface|\Closure(SymfonyRequest): SymfonyResponse $kernel a function for frameworks that use Symfony's
     *     messages without a kernel: `$lumen->handle(...)`, or
     *     `fn ($request) => $laravel->handle(Illuminate\Http\Request::createFromBase($request))`
     * @param float $wait seconds that a request waits for the kernel, at least 0
     * @param LoggerInterface|null $logger receives who holds the kernel when a request waits for too long; null: stderr
     */
    public function __construct(HttpKernelInterface|\Closure $kernel, float $wait = self::BORROW_TIMEOUT, ?LoggerInterface $logger = null)
    {
        $factory = static fn(): HttpKernelInterface|\Closure => $kernel;
        $this->kernels = new KernelPool($factory, 1, $wait, new Recycling(), $logger ?? StreamLogger::fromEnvironment());
    }

    /**
     * Uses a pool of kernels, each with one request at a time. A kernel is made when none is idle, and kept; the one that was used last
     * is lent first, and one that was idle for ten minutes is dropped. A kernel that has thrown is replaced. After each request the
     * services of a Symfony kernel are reset (`services_resetter`).
     *
     * @param \Closure(): (HttpKernelInterface|\Closure(SymfonyRequest): SymfonyResponse) $factory makes a new kernel that shares
     *     no request state with others: `fn () => new Kernel('prod', false)`
     * @param int $size the maximum number of kernels, at least 1; each takes the memory of a booted application
     * @param float $wait seconds that a request waits for a kernel, at least 0
     * @param Recycling $recycling when a kernel is replaced although it works
     * @param LoggerInterface|null $logger receives who holds the kernels when a request waits for too long; null: stderr
     */
    public static function pool(
        \Closure $factory,
        int $size = 8,
        float $wait = self::BORROW_TIMEOUT,
        Recycling $recycling = new Recycling(),
        ?LoggerInterface $logger = null,
    ): self {
        $handler = (new \ReflectionClass(self::class))->newInstanceWithoutConstructor();
        $handler->kernels = new KernelPool(self::fresh($factory), $size, $wait, $recycling, $logger ?? StreamLogger::fromEnvironment());

        return $handler;
    }

    /** @throws HttpException 503: no kernel became free in time */
    public function __invoke(Request $request): Response
    {
        $message = self::message($request);
        $lent = $this->kernels->borrow();
        try {
            $answer = $lent->kernel instanceof \Closure ? ($lent->kernel)($message) : $lent->kernel->handle($message);
            $response = new Response($answer->getStatusCode(), self::headers($answer), self::body($answer));
        } catch (\Throwable $thrown) {
            $lent->discard();
            throw $thrown instanceof RequestExceptionInterface ? new BadRequestException("400 Bad Request: {$thrown->getMessage()}", previous: $thrown) : $thrown;
        }
        $request->afterResponse(static function () use ($lent, $message, $answer): void {
            try {
                $lent->kernel instanceof TerminableInterface && $lent->kernel->terminate($message, $answer);
                $lent->giveBack();
            } catch (\Throwable $thrown) {
                $lent->discard();
                throw $thrown;
            }
        });

        return $response;
    }

    /**
     * Rejects a factory that returns the same kernel twice, since two requests would share it.
     *
     * @return \Closure(): (HttpKernelInterface|\Closure)
     */
    private static function fresh(\Closure $factory): \Closure
    {
        $made = new \WeakMap();

        return static function () use ($factory, $made): HttpKernelInterface|\Closure {
            /** @var HttpKernelInterface|\Closure $kernel */
            $kernel = $factory();
            if (isset($made[$kernel])) {
                throw new \Error('The factory of SymfonyHandler::pool() returned a kernel again: it must make a new one each time');
            }
            $made[$kernel] = true;

            return $kernel;
        };
    }

    private static function message(Request $request): SymfonyRequest
    {
        $isMultipart = Form::isMultipart($request);
        $isForm = $isMultipart || \stripos($request->header('content-type') ?? '', 'application/x-www-form-urlencoded') === 0;
        $form = $isForm ? $request->form() : [];
        $files = $isMultipart ? self::files($request) : [];
        $server = ServerParameters::of($request) + ['REMOTE_ADDR' => '127.0.0.1'];
        $message = new SymfonyRequest($request->queryParameters(), $form, $request->parameters, $request->cookies(), $files, $server, $request->body());
        // One value per field, if the client has sent several.
        foreach ($request->headers() as $name => $values) {
            if (\count($values) > 1 && ServerParameters::isUnambiguous((string) $name)) {
                $message->headers->set((string) $name, $values);
            }
        }

        return $message;
    }

    /** @return array<array-key, mixed> */
    private static function files(Request $request): array
    {
        $files = $request->parsedForm()->tree();
        // Test mode, because PHP itself does not know these uploads.
        \array_walk_recursive($files, static function (Upload &$file): void {
            $file = new UploadedFile($file->path(), $file->name, $file->type, \UPLOAD_ERR_OK, true);
        });

        /** @var array<array-key, mixed> $files */
        return $files;
    }

    /** @return array<string, list<string>> */
    private static function headers(SymfonyResponse $answer): array
    {
        $headers = $answer->headers->all();
        unset($headers['transfer-encoding']);

        /** @var array<string, list<?string>> $headers */
        return \array_map(static fn(array $values): array => \array_map(\strval(...), $values), $headers);
    }

    /** The output of a streamed response becomes the chunks of the body. */
    private static function body(SymfonyResponse $answer): string|\Closure
    {
        $content = $answer instanceof StreamedResponse ? false : $answer->getContent();
        if ($content !== false) {
            return $content;
        }

        return static function (BodyWriter $writer) use ($answer): void {
            \ob_start(static function (string $chunk) use ($writer): string {
                if ($chunk !== '') {
                    $writer->writeWithoutWaiting($chunk);
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
