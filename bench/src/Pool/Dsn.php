<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Bench\BenchmarkException;

/** Turns a data source name of PDO into a URL of Weft. */
final class Dsn
{
    private const SCHEMES = ['mysql' => 'mysql', 'pgsql' => 'postgres'];

    /**
     * @param string $dsn such as `mysql:host=localhost;port=3306;dbname=test`; a URL is returned as it is
     *
     * @throws BenchmarkException for another driver or an unknown part
     */
    public static function url(string $dsn, string $username, string $password): string
    {
        if (str_contains($dsn, '://')) {
            return $dsn;
        }
        [$driver, $rest] = explode(':', $dsn, 2) + [1 => ''];
        $scheme = self::SCHEMES[$driver]
            ?? throw new BenchmarkException("connection.dsn must begin with mysql: or pgsql:, or be a URL, got '$dsn'");
        $parts = self::parts($rest);
        $credentials = rawurlencode($username) . ($password === '' ? '' : ':' . rawurlencode($password));
        $port = isset($parts['port']) ? ":{$parts['port']}" : '';

        return self::plain("$scheme://$credentials@{$parts['host']}$port/{$parts['dbname']}");
    }

    /** The same without TLS, which PDO's driver for MySQL does not use by default. */
    public static function plain(string $url): string
    {
        return "$url?sslmode=disable";
    }

    /** @return array{host: string, port?: string, dbname: string} */
    private static function parts(string $text): array
    {
        $parts = ['host' => 'localhost', 'dbname' => ''];
        foreach (array_filter(explode(';', $text)) as $part) {
            [$name, $value] = explode('=', $part, 2) + [1 => ''];
            in_array($name, ['host', 'port', 'dbname'], true)
                || throw new BenchmarkException("connection.dsn may have host, port and dbname, got '$name'");
            $parts[$name] = $value;
        }

        return $parts;
    }
}
