<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\StreamedBody;
use Weft\Native\HttpEncoder;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

/**
 * Middleware that compresses responses for clients that accept it: `$routes->use(new Compression())`.
 *
 * It compresses text, JSON, XML and similar content types, and streamed bodies chunk by chunk. It leaves alone responses that already
 * have a content encoding or `cache-control: no-transform`, partial content (206), files and event streams.
 *
 * An attacker who sees the size of responses over TLS and controls a part of one can guess secrets in it (BREACH): do not compress
 * pages that contain both a secret and data of the request.
 */
final class Compression
{
    private const WITHOUT_CONTENTS = [101 => true, 204 => true, 205 => true, 206 => true, 304 => true];

    /**
     * @param int $minBytes bytes, at least 0; smaller bodies are not compressed, streamed bodies have no size and always are
     * @param non-empty-list<string> $codings `zstd`, `br`, `gzip`: in order of preference among those that a client accepts equally
     *
     * @throws \ValueError
     */
    public function __construct(private readonly int $minBytes = 1_024, private readonly array $codings = ['zstd', 'br', 'gzip'])
    {
        if ($minBytes < 0) {
            throw new \ValueError("minBytes must be at least 0, got $minBytes");
        }
        $unknown = \array_diff($codings, ['zstd', 'br', 'gzip']);
        if ($unknown !== [] || $codings === []) {
            throw new \ValueError('codings must be of zstd, br and gzip, got ' . (string) \json_encode($codings));
        }
    }

    public function __invoke(Request $request, \Closure $next): mixed
    {
        $response = $next($request);
        if (!$response instanceof Response || !$this->suits($response)) {
            return $response;
        }
        $coding = HttpEncoder::choose($request->header('accept-encoding') ?? '', $this->codings);
        $vary = $response->header('vary');
        $response = $response->withHeader('vary', $vary === null ? 'accept-encoding' : "$vary, accept-encoding");

        return $coding === null ? $response : self::encoded($response, $coding);
    }

    private function suits(Response $response): bool
    {
        $headers = $response->headers;
        if ($response->body instanceof Internal\Body || isset(self::WITHOUT_CONTENTS[$response->status]) || isset($headers['content-encoding'])) {
            return false;
        }
        if (\is_string($response->body) && \strlen($response->body) < \max(1, $this->minBytes)) {
            return false;
        }

        return HttpEncoder::suits($response->header('content-type') ?? '')
            && \stripos($response->header('cache-control') ?? '', 'no-transform') === false;
    }

    private static function encoded(Response $response, string $coding): Response
    {
        $headers = ['content-encoding' => $coding] + $response->headers;
        unset($headers['content-length'], $headers['accept-ranges']);
        $tag = $response->header('etag');
        if ($tag !== null && !\str_starts_with($tag, 'W/')) {
            // The representation differs, so the validator is weak (RFC 9110 §8.8.1).
            $headers['etag'] = "W/$tag";
        }

        /** @var string|iterable<string>|\Closure(BodyWriter): mixed $body suits() has refused other bodies */
        $body = $response->body;

        return new Response($response->status, $headers, self::body($body, $coding));
    }

    /** @param string|iterable<string>|\Closure(BodyWriter): mixed $body */
    #[WaitsFor('the compression of a response')]
    private static function body(string|iterable|\Closure $body, string $coding): string|\Closure
    {
        if (\is_string($body)) {
            $encoded = HttpEncoder::compress($coding, $body);

            return \is_int($encoded) ? Scheduler::await($encoded) : $encoded;
        }

        return static function (BodyWriter $writer) use ($body, $coding): void {
            $writer->encode(HttpEncoder::open($coding));
            StreamedBody::copy($body, $writer);
        };
    }
}
