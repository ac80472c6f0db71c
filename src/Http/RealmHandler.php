<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\RealmRequest;
use Weft\Native;
use Weft\Runtime\Realm;
use Weft\Runtime\Semaphore;
use Weft\Runtime\TimeoutException;

use function Weft\timeout;

/**
 * Serves an application that uses PHP as under PHP-FPM: superglobals, `header()`, `setcookie()`, `session_start()`, `echo`.
 *
 * Each request borrows a realm, which isolates all of that from the requests that run at the same time ({@see Realm}):
 *
 * ```
 * $app->http('0.0.0.0:8080')->fallback(RealmHandler::script(__DIR__ . '/public/index.php', size: 16));
 * ```
 *
 * The output is buffered and sent as one response. `exit()` ends the worker process, not the request: return from the script instead.
 */
final class RealmHandler
{
    /** Seconds that a request waits for a realm. */
    private const BORROW_TIMEOUT = 5.0;

    private readonly Semaphore $permits;
    /** @var list<array{Realm, \Closure(Request): mixed}> the last one returned is borrowed first: its memory is in the caches */
    private array $idle = [];
    /** A script begins each request anew, as under PHP-FPM; an application keeps what it has booted. */
    private bool $keepsRealms = true;

    /**
     * @param \Closure(): (\Closure(Request): mixed) $boot runs once in each realm and returns what handles its requests: an application
     *     that has been booted. What that returns becomes the response if it is a {@see Response}, else what it has printed
     * @param int<1, max> $size realms, each with one request at a time; one is made when none is idle
     * @param float $wait seconds that a request waits for a realm, at least 0; then it is answered 503
     * @param array<string, string> $server `$_SERVER` variables in place of the request's own
     */
    public function __construct(private readonly \Closure $boot, int $size = 8, private readonly float $wait = self::BORROW_TIMEOUT, private readonly array $server = [])
    {
        if ($size < 1) {
            throw new \ValueError("A RealmHandler needs at least 1 realm, got \$size $size");
        }
        if (!($wait >= 0.0)) {
            throw new \ValueError("The wait for a realm must be at least 0 seconds, got \$wait $wait");
        }
        $this->permits = new Semaphore($size);
    }

    /**
     * Runs a PHP file for each request, such as the front controller of an application, in a realm of its own. The file must not declare
     * functions or classes itself, because it is run more than once.
     *
     * @param string $file absolute, or relative to the current directory
     * @param int<1, max> $size
     * @param float $wait seconds
     *
     * @throws \ValueError the file does not exist
     */
    public static function script(string $file, int $size = 8, float $wait = self::BORROW_TIMEOUT): self
    {
        $path = \realpath($file);
        if ($path === false || !\is_file($path)) {
            throw new \ValueError("RealmHandler::script() needs a PHP file, and $file does not exist");
        }
        $server = ['SCRIPT_FILENAME' => $path, 'SCRIPT_NAME' => '/' . \basename($path), 'PHP_SELF' => '/' . \basename($path), 'DOCUMENT_ROOT' => \dirname($path)];

        $handler = new self(static fn(): \Closure => static fn(): mixed => (static fn(): mixed => require $path)(), $size, $wait, $server);
        $handler->keepsRealms = false;

        return $handler;
    }

    /** @throws HttpException 503: no realm became free in time */
    public function __invoke(Request $request): Response
    {
        try {
            $permit = $this->permits->tryAcquire() ?? timeout($this->wait, $this->permits->acquire(...));
        } catch (TimeoutException $expired) {
            $message = "503 Service Unavailable: all realms of the application ({$this->permits->permits}) were busy for $this->wait s";
            throw new HttpException(503, $message, ['retry-after' => '1'], $expired);
        }
        try {
            return $this->handle($request);
        } finally {
            $permit->release();
        }
    }

    private function handle(Request $request): Response
    {
        [$realm, $handler] = \array_pop($this->idle) ?? $this->boot();
        $response = $realm->run(function (Native\Realm $native) use ($request, $handler): Response {
            RealmRequest::begin($native, $request, $this->server);
            [$response, $output] = self::captured($native, static fn(): mixed => $handler($request));

            return RealmRequest::end($native, $response, $output);
        });
        // Not after an exception: the state in which it has left the application is unknown.
        if ($this->keepsRealms) {
            $this->idle[] = [$realm, $handler];
        }

        return $response;
    }

    /** @return array{Realm, \Closure(Request): mixed} */
    private function boot(): array
    {
        $realm = new Realm();

        return [$realm, $realm->run(fn(): \Closure => ($this->boot)())];
    }

    /**
     * @param \Closure(): mixed $handler
     *
     * @return array{Response|null, string} what it has returned and printed
     */
    private static function captured(Native\Realm $native, \Closure $handler): array
    {
        $level = \ob_get_level();
        \ob_start();
        try {
            $result = $handler();
            $native->runShutdownFunctions();
            if (\session_status() === \PHP_SESSION_ACTIVE) {
                \session_write_close();
            }
            while (\ob_get_level() > $level + 1) {
                \ob_end_flush();
            }

            return [$result instanceof Response ? $result : null, (string) \ob_get_clean()];
        } finally {
            while (\ob_get_level() > $level) {
                \ob_end_clean();
            }
        }
    }
}
