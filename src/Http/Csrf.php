<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * Middleware against cross-site request forgery: `$routes->use(new Csrf())` refuses with 403 all requests that another site's page makes a browser send,
 * unless it only reads (GET, HEAD, OPTIONS).
 *
 * Browsers say where a request comes from: `Sec-Fetch-Site` (all since 2023), otherwise `Origin`. So there are no tokens to put into forms.
 * A request with neither field comes from no browser, has no cookies of one, and is passed on. Handlers of GET must change nothing.
 *
 * Behind a proxy that changes the host, name the {@see TrustedProxies}.
 */
final class Csrf
{
    private const SAFE = ['GET' => true, 'HEAD' => true, 'OPTIONS' => true];

    /** @param list<string> $origins that may send requests as well, such as `https://admin.example.org` */
    public function __construct(private readonly array $origins = [])
    {
    }

    public function __invoke(Request $request, \Closure $next): mixed
    {
        if (isset(self::SAFE[$request->method()]) || $this->isAllowed($request)) {
            return $next($request);
        }
        throw new HttpException(403, 'Requests from pages of other sites are refused');
    }

    private function isAllowed(Request $request): bool
    {
        $site = $request->header('sec-fetch-site');
        $origin = $request->header('origin');
        if ($site === 'same-origin' || $site === 'none' || $origin !== null && \in_array($origin, $this->origins, true)) {
            return true;
        }
        if ($site !== null) {
            return false;
        }

        return $origin === null || \preg_replace('~^https?://~', '', \strtolower($origin), 1) === \strtolower($request->host());
    }
}
