<?php

declare(strict_types=1);

namespace Weft\Http;

use Psr\Log\LoggerInterface;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Realm;

/**
 * Serves an application that uses PHP as under PHP-FPM: superglobals, `header()`, `setcookie()`, `session_start()`, `echo`.
 *
 * Each request borrows a realm, which isolates all of that from the requests that run at the same time ({@see Realm}):
 *
 * ```
 * $app->http('0.0.0.0:8080')->fallback(RealmHandler::script(__DIR__ . '/public/index.php', size: 16));
 * ```
 *
 * The output is buffered and sent as one response. `exit()` ends the request with it.
 */
final class RealmHandler
{
    /** @var ApplicationPool<\Closure(Request): mixed> */
    private readonly ApplicationPool $applications;

    /**
     * @param \Closure(): (\Closure(Request): mixed) $boot runs once in each realm and returns what handles its requests: an application
     *     that has been booted. A {@see Response} that it returns is sent, after what it has printed; otherwise only what it has printed
     * @param int<1, max>|null $size realms, each with one request at a time; one is made when none is idle. Null: by memory, at most 32
     * @param float $wait seconds that a request waits for a realm, at least 0; then it is answered 503
     * @param array<string, string> $server `$_SERVER` variables in place of the request's own
     * @param Recycling $recycling when a realm is replaced, and its application booted again
     * @param LoggerInterface|null $logger receives who holds the realms when a request has waited too long; null: stderr
     */
    public function __construct(
        \Closure $boot,
        ?int $size = null,
        float $wait = ApplicationPool::BORROW_TIMEOUT,
        private readonly array $server = [],
        Recycling $recycling = new Recycling(),
        ?LoggerInterface $logger = null,
    ) {
        $this->applications = new ApplicationPool(self::catching($boot), $size, $wait, $recycling, logger: $logger, name: 'realms');
    }

    /**
     * Runs a PHP file for each request, such as the front controller of an application, in a realm of its own. The file must not declare
     * functions or classes itself, because it is run more than once. What it includes with `require_once` runs for each request, too, except for files that declare
     * functions or classes: these run once in the process. The variables of the file are those of a function, and not global.
     *
     * @param string $file absolute, or relative to the current directory
     * @param int<1, max>|null $size
     * @param float $wait seconds
     *
     * @throws \ValueError the file does not exist
     */
    public static function script(string $file, ?int $size = null, float $wait = ApplicationPool::BORROW_TIMEOUT, ?LoggerInterface $logger = null): self
    {
        $path = \realpath($file);
        if ($path === false || !\is_file($path)) {
            throw new \ValueError("RealmHandler::script() needs a PHP file, and $file does not exist");
        }
        $server = ['SCRIPT_FILENAME' => $path, 'SCRIPT_NAME' => '/' . \basename($path), 'PHP_SELF' => '/' . \basename($path), 'DOCUMENT_ROOT' => \dirname($path)];
        $boot = static fn(): \Closure => static fn(): mixed => (static fn(): mixed => require $path)();

        // A script begins each request anew, as under PHP-FPM.
        return new self($boot, $size, $wait, $server, new Recycling(requests: 1), $logger);
    }

    /** @throws ApplicationPoolExhaustedException 503: no realm became free in time */
    public function __invoke(Request $request): Response
    {
        return $this->applications->serve($request, static fn(\Closure $handler): mixed => $handler($request), server: self::pathInfo($request, $this->server));
    }

    /**
     * What follows the name of the script in the path (RFC 3875 §4.1.5).
     *
     * @param array<string, string> $server
     * @return array<string, string>
     */
    private static function pathInfo(Request $request, array $server): array
    {
        $script = $server['SCRIPT_NAME'] ?? '';
        if ($script === '' || !\str_starts_with($request->path(), "{$script}/")) {
            return $server;
        }
        $rest = \rawurldecode(\substr($request->path(), \strlen($script)));

        return ['PATH_INFO' => $rest, 'PHP_SELF' => $script . $rest] + $server;
    }

    /**
     * An exception that the request does not catch goes to the function that the application has given to `set_exception_handler()`, and ends the
     * request like `exit()`. Weft's own answers, such as a 400, pass it by.
     *
     * @param \Closure(): (\Closure(Request): mixed) $boot
     *
     * @return \Closure(): (\Closure(Request): mixed)
     */
    private static function catching(\Closure $boot): \Closure
    {
        return static function () use ($boot): \Closure {
            // That of the process is for what fails outside of requests.
            $inherited = self::exceptionHandler();
            $handle = $boot();

            return static function (Request $request) use ($handle, $inherited): mixed {
                try {
                    return $handle($request);
                } catch (ServerException $thrown) {
                    throw $thrown;
                } catch (\Throwable $thrown) {
                    $handler = self::exceptionHandler();
                    if (Scheduler::isCancelledBy($thrown) || $handler === null || $handler === $inherited) {
                        throw $thrown;
                    }
                    // As PHP does for the call: what it throws does not come back to it.
                    \set_exception_handler(null);
                    $handler($thrown);
                    exit;
                }
            };
        };
    }

    private static function exceptionHandler(): ?callable
    {
        $handler = \set_exception_handler(null);
        \restore_exception_handler();

        return $handler;
    }
}
