<?php

declare(strict_types=1);

// What the workers of RoadRunner share: requests become those of HttpFoundation as baldinof/roadrunner-bundle makes them, without PSR-7 between.

use Spiral\RoadRunner\Http\HttpWorker;
use Spiral\RoadRunner\Http\Request as Message;
use Spiral\RoadRunner\Worker;
use Symfony\Component\HttpFoundation\Request;

require_once getenv('ROADRUNNER_AUTOLOAD');

/**
 * Serves until RoadRunner ends the worker.
 *
 * @param \Closure(Request): array{int, array<string, list<string>>, string} $handle returns the status, the headers and the body
 * @param \Closure(): void $terminate runs after the response was sent
 */
function serve(Closure $handle, Closure $terminate): void
{
    $worker = new HttpWorker(Worker::create());
    while (($message = $worker->waitRequest()) !== null) {
        try {
            [$status, $headers, $body] = $handle(httpRequest($message));
            $worker->respond($status, $body, $headers);
            $terminate();
        } catch (Throwable $failure) {
            $worker->getWorker()->error((string) $failure);
        }
    }
}

function httpRequest(Message $message): Request
{
    $uri = parse_url($message->uri);
    $server = [
        'REQUEST_TIME' => time(),
        'REQUEST_TIME_FLOAT' => microtime(true),
        'REMOTE_ADDR' => $message->remoteAddr,
        'SERVER_PROTOCOL' => $message->protocol,
        'SERVER_NAME' => $uri['host'] ?? '127.0.0.1',
        'SERVER_PORT' => $uri['port'] ?? 80,
        'REQUEST_METHOD' => $message->method,
        'REQUEST_URI' => ($uri['path'] ?? '/') . (isset($uri['query']) ? "?{$uri['query']}" : ''),
        'QUERY_STRING' => $uri['query'] ?? '',
    ];
    foreach ($message->headers as $name => $values) {
        $name = strtoupper(strtr((string) $name, '-', '_'));
        $server[in_array($name, ['CONTENT_TYPE', 'CONTENT_LENGTH'], true) ? $name : "HTTP_$name"] = implode(', ', $values);
    }

    return new Request($message->query, $message->parsed ? (array) $message->getParsedBody() : [], [], $message->cookies, [], $server, $message->body);
}
