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
    private const WITHOUT_PREFIX = ['content-type' => 'CONTENT_TYPE', 'content-length' => 'CONTENT_LENGTH'];

    /** @return array<string, string|int|float> */
    public static function of(Request $request): array
    {
        $query = $request->queryString();
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
        ] + self::host($request) + self::authentication($request->header('authorization') ?? '');
        if ($request->clientAddress() !== null) {
            $parameters += ['REMOTE_ADDR' => $request->clientAddress(), 'REMOTE_PORT' => (int) $request->clientPort()];
        }
        if ($request->scheme() === 'https') {
            $parameters['HTTPS'] = 'on';
        }

        /** @var array<string, string|int|float> $parameters */
        return $parameters + self::fields($request);
    }

    /** Whether a header field may become a `$_SERVER` variable. */
    public static function isUnambiguous(string $name): bool
    {
        return !\str_contains($name, '_') && $name !== 'proxy' && !\str_starts_with($name, 'php-auth-');
    }

    /** @return array<string, string|int> */
    private static function host(Request $request): array
    {
        $host = $request->host();
        $hasPort = \preg_match('/^(\[[^\]]*\]|[^:]*):(\d+)$/D', $host, $found) === 1;

        return [
            'HTTP_HOST' => $host,
            'SERVER_NAME' => $hasPort ? $found[1] : $host,
            'SERVER_PORT' => $hasPort ? (int) $found[2] : ($request->scheme() === 'https' ? 443 : 80),
        ];
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

    /** @return array<string, string> */
    private static function fields(Request $request): array
    {
        $fields = [];
        foreach ($request->headers() as $name => $values) {
            $name = (string) $name;
            if (self::isUnambiguous($name)) {
                $key = self::WITHOUT_PREFIX[$name] ?? 'HTTP_' . \strtoupper(\strtr($name, '-', '_'));
                $fields[$key] = \implode($name === 'cookie' ? '; ' : ', ', $values);
            }
        }

        return $fields;
    }
}
