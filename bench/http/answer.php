<?php

declare(strict_types=1);

require __DIR__ . '/fortunes.php';
require __DIR__ . '/session.php';

/**
 * The answer of a worker that serves one request at a time; the connection to PostgreSQL is made for the first one that needs it.
 *
 * @param array<string, string> $query
 *
 * @return array{int, string, string} status, type of the content and content
 */
function answer(string $path, array $query): array
{
    static $session = null;
    $database = static function () use (&$session): Session {
        return $session ??= new Session();
    };
    $text = static fn (string $content): array => [200, 'text/plain; charset=utf-8', $content];
    $json = static fn (array $value): array => [200, 'application/json', json_encode($value, JSON_THROW_ON_ERROR)];

    return match ($path) {
        '/hello' => $text('Hello, World!'),
        '/json' => $json(['message' => 'Hello, World!']),
        '/query' => $json($database()->person((int) ($query['id'] ?? 0))),
        '/queries' => $json($database()->people((int) ($query['count'] ?? 0))),
        '/update' => $json($database()->update()),
        '/fortunes' => [200, 'text/html; charset=utf-8', fortunes($database()->fortunes())],
        '/body' => $text(str_repeat('x', 100_000)),
        default => [404, 'text/plain; charset=utf-8', ''],
    };
}
