<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\Request;

/**
 * The `$_SERVER` variables of a request (RFC 3875 §4.1), for applications that read them.
 *
 * Header fields with an underscore in their name are left out: `X_Real_IP` would become `HTTP_X_REAL_IP`, as does `X-Real-IP`, which
 * a proxy sets. Also left out are `Proxy`, which libraries mistake for the variable HTTP_PROXY, and fields named like PHP's own
 * `PHP_AUTH_…`.
 *
 * @internal
 */
final class ServerParameters
{
    /** Names of header fields that are kept: clients choose them. */
    private const MOST_KEYS = 256;

    private const WITHOUT_PREFIX = ['content-type' => 'CONTENT_TYPE', 'content-length' => 'CONTENT_LENGTH'];

    /** @var array<string, string> variables by header field; empty for one that is left out */
    private static array $keys = [];

    /** @return array<string, string|int|float> the same for each call with a request */
    public static function of(Request $request): array
    {
        return $request->serverParameters ??= self::made($request);
    }

    /** @return array<string, string|int|float> */
    private static function made(Request $request): array
    {
        $query = $request->queryString();
        $host = $request->host();
        $isSecure = $request->scheme() === 'https';
        $now = \microtime(true);
        $parameters = [
            'REQUEST_METHOD' => $request->method(),
            'REQUEST_URI' => $request->path() . ($query === '' ? '' : "?$query"),
            'QUERY_STRING' => $query,
            'REQUEST_TIME' => (int) $now,
            'REQUEST_TIME_FLOAT' => $now,
            'SCRIPT_NAME' => '',
            'SCRIPT_FILENAME' => '',
            'SERVER_PROTOCOL' => "HTTP/{$request->protocol()}",
            'SERVER_NAME' => self::hostOf($request),
            'SERVER_PORT' => $isSecure ? '443' : '80',
        ];
        if ($host !== '') {
            $parameters['HTTP_HOST'] = $host;
        }
        if (\str_contains($host, ':') && \preg_match('/^(\[[^\]]*\]|[^:]*):(\d+)$/D', $host, $found) === 1) {
            $parameters['SERVER_NAME'] = $found[1];
            $parameters['SERVER_PORT'] = $found[2];
        }
        $address = $request->clientAddress();
        if ($address !== null) {
            $parameters['REMOTE_ADDR'] = $address;
            $parameters['REMOTE_PORT'] = (string) $request->clientPort();
        }
        if ($isSecure) {
            $parameters['HTTPS'] = 'on';
        }
        $headers = $request->headers();
        if (isset($headers['authorization'])) {
            $parameters += self::authentication(\implode(', ', $headers['authorization']));
        }
        foreach ($headers as $name => $values) {
            $key = self::$keys[$name] ?? self::key((string) $name);
            if ($key !== '') {
                $parameters[$key] ??= isset($values[1]) ? \implode(', ', $values) : $values[0];
            }
        }

        /** @var array<string, string|int|float> $parameters */
        return $parameters;
    }

    /** Host and port of the request's URI: a client of HTTP/1.0 may name none, such as the health check of a load balancer. */
    public static function hostOf(Request $request): string
    {
        $host = $request->host();

        return $host === '' ? 'localhost' : $host;
    }

    /** Whether a header field may become a `$_SERVER` variable. */
    public static function isUnambiguous(string $name): bool
    {
        return !\str_contains($name, '_') && $name !== 'proxy' && !\str_starts_with($name, 'php-auth-');
    }

    /**
     * The header fields in such variables, as `getallheaders()` of PHP-FPM returns them.
     *
     * @param array<array-key, mixed> $parameters
     *
     * @return array<string, string>
     */
    public static function headers(array $parameters): array
    {
        $headers = [];
        foreach ($parameters as $key => $value) {
            $name = \str_starts_with((string) $key, 'HTTP_') ? \substr((string) $key, 5) : (\in_array($key, self::WITHOUT_PREFIX, true) ? $key : '');
            if ($name !== '' && \is_scalar($value)) {
                $headers[\ucwords(\strtolower(\strtr($name, '_', '-')), '-')] = (string) $value;
            }
        }

        return $headers;
    }

    /** @return array<string, string> as PHP itself reads Basic (RFC 7617) and Digest (RFC 7616) */
    private static function authentication(string $header): array
    {
        $parts = \explode(' ', $header, 2);
        $scheme = \strtolower($parts[0]);
        $credentials = $parts[1] ?? '';
        if ($scheme === 'digest') {
            return ['PHP_AUTH_DIGEST' => $credentials];
        }
        $decoded = $scheme === 'basic' ? (string) \base64_decode($credentials) : '';
        $parts = \explode(':', $decoded, 2);

        return isset($parts[1]) ? ['PHP_AUTH_USER' => $parts[0], 'PHP_AUTH_PW' => $parts[1]] : [];
    }

    private static function key(string $name): string
    {
        $key = self::isUnambiguous($name) ? self::WITHOUT_PREFIX[$name] ?? 'HTTP_' . \strtoupper(\strtr($name, '-', '_')) : '';
        if (\count(self::$keys) < self::MOST_KEYS) {
            self::$keys[$name] = $key;
        }

        return $key;
    }
}
