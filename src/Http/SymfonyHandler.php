<?php

declare(strict_types=1);

namespace Weft\Http;

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

/**
 * Lets a Symfony kernel answer: `$app->http('0.0.0.0:8080')->fallback(new SymfonyHandler($kernel))`.
 *
 * A kernel was made for one request at a time, so it gets no second one while it has one: others wait. With
 * {@see SymfonyHandler::pool()} there are several kernels and as many requests at once. A request that waits longer than `$wait`
 * is answered 503.
 *
 * `terminate()` runs when the answer has been handed to the connection, and what it throws is logged. The kernel is busy until it
 * returns, and until a StreamedResponse has been made; what that prints does not wait for the client.
 */
final class SymfonyHandler
{
    /** Seconds that a request waits for a kernel. */
    private const WAIT = 5.0;

    private KernelPool $kernels;

    /**
     * @param HttpKernelInterface|\Closure(SymfonyRequest): SymfonyResponse $kernel a function for what is built on Symfony's
     *     messages and is no kernel: `$lumen->handle(...)`, or
     *     `fn ($request) => $laravel->handle(Illuminate\Http\Request::createFromBase($request))`
     * @param float $wait seconds from 0 on that a request waits for the kernel
     */
    public function __construct(HttpKernelInterface|\Closure $kernel, float $wait = self::WAIT)
    {
        $this->kernels = new KernelPool(static fn(): HttpKernelInterface|\Closure => $kernel, 1, $wait);
    }

    /**
     * Several kernels, each with one request at a time. One is made when a request finds none idle, and stays; one that an
     * exception came out of is replaced.
     *
     * @param \Closure(): (HttpKernelInterface|\Closure(SymfonyRequest): SymfonyResponse) $factory makes a new kernel that shares
     *     no state of a request with others: `fn () => new Kernel('prod', false)`
     * @param int $size kernels at most, from 1 on; each has the memory of a booted application
     * @param float $wait seconds from 0 on that a request waits for a kernel
     */
    public static function pool(\Closure $factory, int $size = 8, float $wait = self::WAIT): self
    {
        $handler = (new \ReflectionClass(self::class))->newInstanceWithoutConstructor();
        $handler->kernels = new KernelPool(self::fresh($factory), $size, $wait);

        return $handler;
    }

    /** @throws HttpException 503: no kernel was free in time */
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
            } catch (\Throwable $thrown) {
                $lent->discard();
                throw $thrown;
            }
            $lent->giveBack();
        });

        return $response;
    }

    /**
     * Refuses a factory that returns one kernel twice, which two requests would share.
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
                throw new \Error('The factory of SymfonyHandler::pool() returned a kernel again that it had returned before: it must make a new one');
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
        // One by one where the client has sent several.
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
        // As in Symfony's own tests: what PHP itself knows of uploads it does not know of these.
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
