<?php

declare(strict_types=1);

// Serves the benchmark's requests under PHP-FPM and under `php -S`; static files are the web server's.

require __DIR__ . '/../../../fortunes.php';

function database(): PDO
{
    $parts = parse_url((string) getenv('DATABASE_URL'));
    $dsn = sprintf('pgsql:host=%s;port=%d;dbname=%s;sslmode=disable', $parts['host'], $parts['port'], ltrim($parts['path'], '/'));

    return new PDO($dsn, $parts['user'], $parts['pass'], [
        PDO::ATTR_PERSISTENT => true,
        // One round trip for each query: a server-side statement would be prepared and dropped with every request.
        PDO::PGSQL_ATTR_DISABLE_PREPARES => true,
    ]);
}

function sendText(string $body): void
{
    header('Content-Type: text/plain; charset=utf-8');
    header('Content-Length: ' . strlen($body));
    echo $body;
}

function sendJson(array $value): void
{
    $body = json_encode($value, JSON_THROW_ON_ERROR);
    header('Content-Type: application/json');
    header('Content-Length: ' . strlen($body));
    echo $body;
}

function sendHtml(string $body): void
{
    header('Content-Type: text/html; charset=utf-8');
    header('Content-Length: ' . strlen($body));
    echo $body;
}

function person(int $id): array
{
    $select = database()->prepare('SELECT id, name, email FROM people WHERE id = ?');
    $select->execute([$id]);

    return $select->fetch(PDO::FETCH_ASSOC);
}

function people(int $count): array
{
    $select = database()->prepare('SELECT id, name, email FROM people WHERE id = ?');
    $rows = [];
    for ($i = 0; $i < $count; ++$i) {
        $select->execute([mt_rand(1, 10_000)]);
        $rows[] = $select->fetch(PDO::FETCH_ASSOC);
    }

    return $rows;
}

function update(): array
{
    $database = database();
    $select = $database->prepare('SELECT id, value FROM counters WHERE id = ?');
    $select->execute([mt_rand(1, 10_000)]);
    $row = $select->fetch(PDO::FETCH_ASSOC);
    $row['value'] = mt_rand(1, 10_000);
    $database->prepare('UPDATE counters SET value = ? WHERE id = ?')->execute([$row['value'], $row['id']]);

    return $row;
}

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
if (PHP_SAPI === 'cli-server' && str_starts_with($path, '/static/')) {
    return false;
}
match ($path) {
    '/hello' => sendText('Hello, World!'),
    '/json' => sendJson(['message' => 'Hello, World!']),
    '/query' => sendJson(person((int) ($_GET['id'] ?? 0))),
    '/queries' => sendJson(people((int) ($_GET['count'] ?? 0))),
    '/update' => sendJson(update()),
    '/fortunes' => sendHtml(fortunes(database()->query('SELECT id, message FROM fortunes')->fetchAll(PDO::FETCH_ASSOC))),
    '/body' => sendText(str_repeat('x', 100_000)),
    default => http_response_code(404),
};
