<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Names handles of libraries for messages: their kind, their number, and what they are connected to. Never a password.
 *
 * @internal
 */
final class HandleName
{
    /**
     * @param mixed $handle the object or resource, or a name where code has no value for it
     * @param ?string $target what it is connected to, where only the extension knows
     */
    public static function of(mixed $handle, ?string $target = null): string
    {
        if (\is_resource($handle)) {
            $peer = self::peer($handle);

            return \get_resource_type($handle) . ' #' . \get_resource_id($handle) . ($peer === '' ? '' : " ($peer)");
        }
        $isObject = \is_object($handle);
        $target = match (true) {
            $target !== null => self::withoutPassword($target),
            $isObject => self::target($handle),
            default => '',
        };

        return ($isObject ? $handle::class . ' #' . \spl_object_id($handle) : (string) $handle) . ($target === '' ? '' : " ($target)");
    }

    private static function target(object $handle): string
    {
        try {
            return match (true) {
                $handle instanceof \mysqli => $handle->host_info ?? '',
                $handle instanceof \Redis => $handle->getHost() . ':' . $handle->getPort(),
                $handle instanceof \AMQPConnection => $handle->getHost() . ':' . $handle->getPort(),
                $handle instanceof \AMQPChannel, $handle instanceof \AMQPQueue, $handle instanceof \AMQPExchange => self::target($handle->getConnection()),
                $handle instanceof \CurlHandle => self::withoutSecrets((string) \curl_getinfo($handle, \CURLINFO_EFFECTIVE_URL)),
                $handle instanceof \PgSql\Connection => \pg_host($handle) . ':' . \pg_port($handle) . '/' . \pg_dbname($handle),
                default => '',
            };
        } catch (\Throwable) {
            // A handle that is not connected has no target.
            return '';
        }
    }

    /** A DSN of PDO or PostgreSQL may have its password in it: `pgsql:host=…;password=…`. */
    private static function withoutPassword(string $dsn): string
    {
        return (string) \preg_replace('{((?:password|passwd|pwd)\s*=\s*)(?:\'(?:[^\'\\\\]|\\\\.)*\'|[^;]*?(?=;|\s+\w+\s*=|$))}i', '$1…', $dsn);
    }

    /** The scheme, host and path of a URL: user, password and query may be secrets. */
    private static function withoutSecrets(string $url): string
    {
        $url = (string) \preg_replace('{^([^:/?#]+://)?[^/?#]*@}', '$1', $url);

        return \explode('?', $url, 2)[0];
    }

    /** @param resource $stream */
    private static function peer(mixed $stream): string
    {
        $peer = \get_resource_type($stream) === 'stream' ? @\stream_socket_get_name($stream, true) : false;

        return $peer === false ? '' : $peer;
    }
}
