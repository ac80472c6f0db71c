<?php

declare(strict_types=1);

/*
 * The unmodified clients, as functions of a server's address. Each returns, per task, a wait of so many seconds at the server, or one request
 * as small as it can be.
 */

/** @return array{host: string, port: int, user: string, pass: string, path: string} */
function server(string $variable): array
{
    return parse_url((string) getenv($variable)) + ['user' => '', 'pass' => '', 'path' => '/'];
}

function pgsql(): PDO
{
    $url = server('DATABASE_URL');

    return new PDO("pgsql:host=$url[host];port=$url[port];dbname=weft;sslmode=disable", $url['user'], $url['pass']);
}

function mysql(): PDO
{
    $url = server('WEFT_MYSQL_DSN');

    return new PDO("mysql:host=$url[host];port=$url[port];dbname=weft", $url['user'], $url['pass']);
}

function curl(string $path): string
{
    $curl = curl_init(getenv('HTTP_URL') . $path);
    curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);

    return (string) curl_exec($curl);
}

/** @return array<string, Closure(): (Closure(float): mixed)> connects, where the client keeps a connection, and returns a wait of so many seconds */
function waits(): array
{
    $stateless = static fn(Closure $wait): Closure => static fn(): Closure => $wait;
    $waits = [
        'usleep' => $stateless(static fn(float $seconds): mixed => usleep((int) ($seconds * 1e6))),
        'PDO pgsql' => static function (): Closure {
            $connection = pgsql();

            return static fn(float $seconds): mixed => $connection->query("SELECT pg_sleep($seconds)");
        },
        'PDO mysql' => static function (): Closure {
            $connection = mysql();

            return static fn(float $seconds): mixed => $connection->query("SELECT SLEEP($seconds)");
        },
        'mysqli' => static function (): Closure {
            $url = server('WEFT_MYSQL_DSN');
            $connection = new mysqli($url['host'], $url['user'], $url['pass'], 'weft', $url['port']);

            return static fn(float $seconds): mixed => $connection->query("SELECT SLEEP($seconds)");
        },
        'curl' => $stateless(static fn(float $seconds): mixed => curl("/wait?seconds=$seconds")),
        'file_get_contents' => $stateless(static fn(float $seconds): mixed => file_get_contents(getenv('HTTP_URL') . "/wait?seconds=$seconds")),
        'exec' => $stateless(static fn(float $seconds): mixed => exec("sleep $seconds")),
    ];
    if (is_file('/usr/share/php/GuzzleHttp/autoload.php')) {
        require_once '/usr/share/php/GuzzleHttp/autoload.php';
        $waits['Guzzle'] = $stateless(static fn(float $seconds): mixed => (new GuzzleHttp\Client())->get(getenv('HTTP_URL') . "/wait?seconds=$seconds"));
    }
    if (getenv('REDIS_PORT') !== false && extension_loaded('redis')) {
        $waits['phpredis'] = static function (): Closure {
            $redis = new Redis();
            $redis->connect('127.0.0.1', (int) getenv('REDIS_PORT'));

            return static fn(float $seconds): mixed => $redis->rawCommand('BLPOP', 'nobody', (string) $seconds);
        };
    }

    return $waits;
}

/** @return array<string, Closure(): (Closure(): mixed)> connects once and returns a request */
function requests(): array
{
    return [
        'PDO pgsql' => static function (): Closure {
            $statement = pgsql()->prepare('SELECT 1');

            return static fn(): mixed => $statement->execute() && $statement->fetchColumn();
        },
        'PDO mysql' => static function (): Closure {
            $connection = mysql();

            return static fn(): mixed => $connection->query('SELECT 1')->fetchColumn();
        },
        'curl' => static function (): Closure {
            $curl = curl_init(getenv('HTTP_URL') . '/');
            curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);

            return static fn(): mixed => curl_exec($curl);
        },
    ];
}
