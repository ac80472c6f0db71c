<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\ErrorPage;

/**
 * Middleware that lets pages of other origins read responses (Cross-Origin Resource Sharing): `$routes->use(new Cors(['https://app.example.org']))`.
 *
 * It answers preflight requests, for a whole router or for a group, and marks responses, those to an {@see HttpException} included. An
 * origin that is not listed gets the response without permission: its browser hides it from the page.
 */
final class Cors
{
    /**
     * @param non-empty-list<string> $origins scheme and host, with the port unless it is the default: `https://app.example.org`; `*` is any
     * @param list<string> $methods that those pages may use beside GET, HEAD and POST
     * @param list<string> $headers fields that those pages may set
     * @param list<string> $exposed fields of responses that those pages may read
     * @param bool $credentials whether requests with cookies are allowed; not with `*`
     * @param int $maxAge seconds a browser may remember the answer to a preflight, at least 0
     *
     * @throws \ValueError
     */
    public function __construct(
        private readonly array $origins,
        private readonly array $methods = ['PUT', 'PATCH', 'DELETE'],
        private readonly array $headers = ['content-type', 'authorization'],
        private readonly array $exposed = [],
        private readonly bool $credentials = false,
        private readonly int $maxAge = 7_200,
    ) {
        foreach ($origins as $origin) {
            if ($origin !== '*' && \preg_match('~^[a-z][a-z0-9+.-]*://[^/?#\s]+$~D', $origin) !== 1) {
                throw new \ValueError((string) \json_encode($origin) . ' is not an origin: write scheme and host in lower case, such as https://app.example.org');
            }
        }
        if ($credentials && \in_array('*', $origins, true)) {
            throw new \ValueError('Credentials cannot be allowed for any origin: list the origins');
        }
        if ($maxAge < 0) {
            throw new \ValueError("maxAge must be at least 0 seconds, got $maxAge");
        }
    }

    public function __invoke(Request $request, \Closure $next): mixed
    {
        $origin = $request->header('origin');
        if ($origin !== null && $request->method() === 'OPTIONS' && $request->header('access-control-request-method') !== null) {
            return $this->permitted(Response::noContent(), $origin, $this->preflight());
        }
        try {
            $response = $next($request);
        } catch (HttpException $error) {
            if ($origin === null) {
                throw $error;
            }
            $response = ErrorPage::ofException($error, $request);
        }

        return $response instanceof Response ? $this->permitted($response, $origin, $this->exposed === [] ? [] : ['access-control-expose-headers' => \implode(', ', $this->exposed)]) : $response;
    }

    /** @return array<string, string|int> */
    private function preflight(): array
    {
        return [
            'access-control-allow-methods' => \implode(', ', $this->methods),
            'access-control-allow-headers' => \implode(', ', $this->headers),
            'access-control-max-age' => $this->maxAge,
        ];
    }

    /** @param array<string, string|int> $more */
    private function permitted(Response $response, ?string $origin, array $more): Response
    {
        $isAny = \in_array('*', $this->origins, true);
        if (!$isAny) {
            // Also without an Origin: a cache must not give one page the response to another.
            $vary = $response->header('vary');
            $response = $response->withHeader('vary', $vary === null ? 'origin' : "$vary, origin");
        }
        if ($origin === null || !$isAny && !\in_array($origin, $this->origins, true)) {
            return $response;
        }
        $more['access-control-allow-origin'] = $isAny ? '*' : $origin;
        if ($this->credentials) {
            $more['access-control-allow-credentials'] = 'true';
        }

        return new Response($response->status, $more + $response->headers, $response->body);
    }
}
