<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony;

use Psr\Log\LoggerInterface;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\EventDispatcher\EventDispatcherInterface;
use Symfony\Component\HttpFoundation\Exception\RequestExceptionInterface;
use Symfony\Component\HttpFoundation\File\UploadedFile;
use Symfony\Component\HttpFoundation\Request as SymfonyRequest;
use Symfony\Component\HttpFoundation\Response as SymfonyResponse;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Symfony\Component\HttpKernel\Event\ExceptionEvent;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\HttpKernel;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\Kernel;
use Symfony\Component\HttpKernel\KernelEvents;
use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\HttpKernel\TerminableInterface;
use Weft\Bridge\Internal\SymfonyResponses;
use Weft\Bridge\Internal\SymfonyStatics;
use Weft\Http\ApplicationPool;
use Weft\Http\ApplicationPoolExhaustedException;
use Weft\Http\BadRequestException;
use Weft\Http\Internal\Form;
use Weft\Http\Internal\KeptStatics;
use Weft\Http\Internal\RealmRequest;
use Weft\Http\Internal\ServerParameters;
use Weft\Http\Recycling;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\Upload;
use Weft\Native\Realm;
use Weft\Runtime\Internal\Scheduler;

/**
 * Serves a Symfony kernel: `$app->http('0.0.0.0:8080')->fallback(new SymfonyHandler($kernel))`.
 *
 * Each kernel has a realm of its own ({@see ApplicationPool}): superglobals, `header()`, `setcookie()`, `session_start()`, locale, time zone,
 * error handlers, and the static properties of Symfony that belong to a request.
 *
 * A kernel handles one request at a time; other requests wait. {@see SymfonyHandler::pool()} uses several kernels for as many
 * concurrent requests. A request that waits longer than `$wait` is answered 503.
 *
 * `terminate()` runs after the response has been handed to the connection; exceptions of it are logged. The kernel is busy until
 * `terminate()` returns. Output of a StreamedResponse is sent when it waits, such as in `sleep()`, or has printed 4 KiB; it does not wait
 * for the client.
 */
final class SymfonyHandler
{
    /** Since version 6.4 a kernel takes a process of the command line for a console, and prints errors with their stack traces. */
    private const SERVING = ['APP_RUNTIME_MODE' => 'web=1&worker=1'];

    /** A listener of `kernel.response` with this priority runs immediately before Symfony's StreamedResponseListener. */
    private const BEFORE_STREAMING = -1_023;

    /** @var ApplicationPool<HttpKernelInterface|\Closure(SymfonyRequest): SymfonyResponse> */
    private readonly ApplicationPool $kernels;

    /** @var \WeakMap<KernelInterface, KeptStatics> Symfony's static properties when the kernel had booted, of kernels that have handled a request */
    private readonly \WeakMap $booted;

    /** @var array<string, string> `$_SERVER` variables of each request, beside its own and those of the environment */
    private readonly array $server;

    /**
     * @param HttpKernelInterface|\Closure(SymfonyRequest): SymfonyResponse|ApplicationPool<HttpKernelInterface|\Closure(SymfonyRequest): SymfonyResponse> $kernel
     *     a function for frameworks that use Symfony's messages without a kernel: `$lumen->handle(...)`, or
     *     `fn ($request) => $laravel->handle(Illuminate\Http\Request::createFromBase($request))`
     * @param float $wait seconds that a request waits for the kernel, at least 0; a pool has its own
     * @param LoggerInterface|null $logger receives who holds the kernel when a request waits for too long; null: stderr; a pool has its own
     */
    public function __construct(HttpKernelInterface|\Closure|ApplicationPool $kernel, float $wait = ApplicationPool::BORROW_TIMEOUT, ?LoggerInterface $logger = null)
    {
        SymfonyStatics::isolate();
        $this->booted = new \WeakMap();
        $this->server = \array_diff_key(self::SERVING, RealmRequest::environment());
        $this->kernels = $kernel instanceof ApplicationPool
            ? $kernel
            : new ApplicationPool(static fn(): object => $kernel, 1, $wait, reset: self::reset(...), logger: $logger, name: 'kernels');
    }

    /**
     * Uses a pool of kernels, each with one request at a time: {@see ApplicationPool}. After each request the services of a Symfony kernel
     * are reset (`services_resetter`); before it is dropped it is shut down.
     *
     * @param \Closure(): (HttpKernelInterface|\Closure(SymfonyRequest): SymfonyResponse) $factory makes a new kernel that shares
     *     no request state with others: `fn () => new Kernel('prod', false)`
     * @param int|null $size the maximum number of kernels, at least 1; each takes the memory of a booted application. Null: by memory, at
     *     most 32
     * @param float $wait seconds that a request waits for a kernel, at least 0
     * @param Recycling $recycling when a kernel is replaced although it works
     * @param LoggerInterface|null $logger receives who holds the kernels when a request waits for too long; null: stderr
     */
    public static function pool(
        \Closure $factory,
        ?int $size = null,
        float $wait = ApplicationPool::BORROW_TIMEOUT,
        Recycling $recycling = new Recycling(),
        ?LoggerInterface $logger = null,
    ): self {
        return new self(new ApplicationPool(self::fresh($factory), $size, $wait, $recycling, self::reset(...), self::shutDown(...), $logger, 'kernels'));
    }

    /**
     * The kernels: {@see ApplicationPool::stats()}.
     *
     * @return array{size: int, in_use: int, idle: int, waiting: int, booted: int, served: int, exhausted: int, failed: int, exited: int, spent: int}
     */
    public function stats(): array
    {
        return $this->kernels->stats();
    }

    /** @throws ApplicationPoolExhaustedException 503: no kernel became free in time */
    public function __invoke(Request $request): Response
    {
        $message = $answer = $failure = null;
        $booted = $this->booted;

        return $this->kernels->serve(
            $request,
            static function (HttpKernelInterface|\Closure $kernel) use ($request, $booted, &$message, &$answer, &$failure): ?Response {
                if ($kernel instanceof KernelInterface) {
                    if (isset($booted[$kernel])) {
                        $booted[$kernel]->putBack();
                    } else {
                        $booted[$kernel] = self::boot($kernel);
                    }
                    self::trustPeer($kernel);
                }
                $message = self::message($request);
                try {
                    $answer = $kernel instanceof \Closure ? $kernel($message) : self::outermost($kernel)->handle($message);
                } catch (RequestExceptionInterface $refused) {
                    throw new BadRequestException("400 Bad Request: {$refused->getMessage()}", previous: $refused);
                } catch (\Error $error) {
                    $failure = self::answerError($kernel, $message, $error);

                    return null;
                }

                return SymfonyResponses::convert($answer);
            },
            static function (HttpKernelInterface|\Closure $kernel) use (&$message, &$answer, &$failure): void {
                if ($failure !== null) {
                    throw $failure;
                }
                if ($kernel instanceof TerminableInterface && $answer !== null) {
                    \assert($message !== null);
                    $kernel->terminate($message, $answer);
                }
            },
            $this->server,
        );
    }

    /**
     * Bundles may choose a time zone, for example: that is of the application, and not of its first request. Listeners are added once, since
     * the container of a kernel stays until it is shut down.
     *
     * @return KeptStatics Symfony's static properties, which each request of the kernel begins with
     */
    private static function boot(KernelInterface $kernel): KeptStatics
    {
        $kernel->boot();
        $container = self::container($kernel);
        $dispatcher = $container?->has('event_dispatcher') === true ? $container->get('event_dispatcher') : null;
        $dispatcher instanceof EventDispatcherInterface && self::listen($dispatcher);
        Realm::keepSettings();

        return SymfonyStatics::settings();
    }

    private static function listen(EventDispatcherInterface $dispatcher): void
    {
        $dispatcher->addListener(KernelEvents::EXCEPTION, static function (ExceptionEvent $event): void {
            $cancellation = Scheduler::cancellationIn($event->getThrowable());
            if ($cancellation !== null) {
                // No listener logs it or makes a page of it, and without a response the kernel throws it.
                $event->setThrowable($cancellation);
                $event->stopPropagation();
            }
        }, \PHP_INT_MAX);
        if (Kernel::VERSION_ID < 60_100) {
            // The last listener of these versions prints the whole of a streamed response, into the output of the request.
            $dispatcher->addListener(KernelEvents::RESPONSE, static function (ResponseEvent $event): void {
                $event->isMainRequest() && $event->getResponse() instanceof StreamedResponse && $event->stopPropagation();
            }, self::BEFORE_STREAMING);
        }
    }

    /** A kernel reads its trusted proxies when it boots, and `REMOTE_ADDR` among them would be the peer of its first request for all others. */
    private static function trustPeer(KernelInterface $kernel): void
    {
        $container = self::container($kernel);
        $proxies = $container?->hasParameter('kernel.trusted_proxies') === true ? $container->getParameter('kernel.trusted_proxies') : [];
        $proxies = \is_array($proxies) ? $proxies : \array_map(\trim(...), \explode(',', (string) $proxies));
        if (\in_array('REMOTE_ADDR', $proxies, true)) {
            SymfonyRequest::setTrustedProxies($proxies, SymfonyRequest::getTrustedHeaderSet());
        }
    }

    /** The HTTP cache of the kernel (`framework.http_cache`), if it has one: `Kernel::handle()` uses it only before the kernel has booted. */
    private static function outermost(HttpKernelInterface $kernel): HttpKernelInterface
    {
        $container = $kernel instanceof KernelInterface ? self::container($kernel) : null;
        $cache = $container?->has('http_cache') === true ? $container->get('http_cache') : null;

        return $cache instanceof HttpKernelInterface ? $cache : $kernel;
    }

    /** Null: the kernel has none. */
    private static function container(KernelInterface $kernel): ?ContainerInterface
    {
        try {
            return $kernel->getContainer();
        } catch (\LogicException) {
            return null;
        }
    }

    /**
     * Prints the error page of the application. Kernels that do not handle all throwables leave an `\Error` to the exception handler of the
     * process, which Symfony's ErrorHandler is: it does the same, but for the request with which the kernel has begun.
     *
     * @return \Throwable|null what a listener of `kernel.terminate` has thrown after the page
     *
     * @throws \Throwable the same error, of a kernel that has no error page; what the page itself has thrown
     */
    private static function answerError(HttpKernelInterface|\Closure $kernel, SymfonyRequest $message, \Error $error): ?\Throwable
    {
        $container = $kernel instanceof KernelInterface ? $kernel->getContainer() : null;
        $inner = $container?->has('http_kernel') === true ? $container->get('http_kernel') : null;
        if ($container === null || !$inner instanceof HttpKernel) {
            throw $error;
        }
        $isPrinted = false;
        $dispatcher = $container->has('event_dispatcher') ? $container->get('event_dispatcher') : null;
        $listener = static function () use (&$isPrinted): void {
            $isPrinted = true;
        };
        $dispatcher instanceof EventDispatcherInterface && $dispatcher->addListener(KernelEvents::TERMINATE, $listener, \PHP_INT_MAX);
        try {
            $inner->terminateWithException($error, $message);
        } catch (\Throwable $thrown) {
            return $isPrinted ? $thrown : throw $thrown;
        } finally {
            $dispatcher instanceof EventDispatcherInterface && $dispatcher->removeListener(KernelEvents::TERMINATE, $listener);
        }

        return null;
    }

    /** Resets services now and not before the next request: what they keep may be large, or a connection. */
    private static function reset(HttpKernelInterface|\Closure $kernel): void
    {
        $kernel instanceof KernelInterface && $kernel->boot();
    }

    /** Bundles take back what they have registered in the process, such as DoctrineBundle its autoloader, which would keep the kernel alive. */
    private static function shutDown(HttpKernelInterface|\Closure $kernel): void
    {
        $kernel instanceof KernelInterface && $kernel->shutdown();
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
            // PHP 8.6 makes a closure once if it captures nothing, and has then no state that two requests could share.
            if (isset($made[$kernel]) && !self::isStateless($kernel)) {
                throw new \Error('The factory of SymfonyHandler::pool() returned a kernel again: it must make a new one each time');
            }
            $made[$kernel] = true;

            return $kernel;
        };
    }

    private static function isStateless(HttpKernelInterface|\Closure $kernel): bool
    {
        if (!$kernel instanceof \Closure) {
            return false;
        }
        $function = new \ReflectionFunction($kernel);

        // The captured variables are among the static ones.
        return $function->getClosureThis() === null && $function->getStaticVariables() === [];
    }

    private static function message(Request $request): SymfonyRequest
    {
        $isMultipart = Form::isMultipart($request);
        $form = Form::isForm($request) ? $request->form() : [];
        $files = $isMultipart ? self::files($request) : [];
        $server = ServerParameters::of($request);
        $server['REMOTE_ADDR'] ??= '127.0.0.1';
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
}
