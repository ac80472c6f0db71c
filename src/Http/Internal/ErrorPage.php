<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\HttpException;
use Weft\Http\Response;

/**
 * The response to a failure.
 *
 * @internal
 */
final class ErrorPage
{
    private const REASONS = [
        400 => 'Bad Request', 401 => 'Unauthorized', 403 => 'Forbidden', 404 => 'Not Found', 408 => 'Request Timeout',
        409 => 'Conflict', 413 => 'Content Too Large', 415 => 'Unsupported Media Type', 422 => 'Unprocessable Content',
        429 => 'Too Many Requests', 500 => 'Internal Server Error', 503 => 'Service Unavailable',
    ];

    public static function ofException(HttpException $error): Response
    {
        $text = $error->getMessage();
        $page = $text === '' ? self::plain($error->status) : Response::text("$text\n", $error->status);

        return new Response($page->status, $error->headers + $page->headers, $page->body);
    }

    public static function plain(int $status): Response
    {
        return Response::text(\rtrim("$status " . (self::REASONS[$status] ?? '')) . "\n", $status);
    }

    public static function unavailable(): Response
    {
        return self::plain(503)->withHeader('retry-after', '1');
    }

    public static function withTrace(\Throwable $error): Response
    {
        $escape = static fn(string $text): string => \htmlspecialchars($text, \ENT_QUOTES | \ENT_SUBSTITUTE);
        $title = $escape($error::class . ': ' . $error->getMessage());

        return Response::html("<!doctype html><title>$title</title><h1>$title</h1><pre>{$escape((string) $error)}</pre>\n", 500);
    }
}
