<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\HttpException;
use Weft\Http\InvalidRequestException;
use Weft\Http\Problem;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Log\Internal\ExceptionReport;

/**
 * The response to a failure.
 *
 * @internal
 */
final class ErrorPage
{
    private const REASONS = [
        200 => 'OK', 201 => 'Created', 202 => 'Accepted', 204 => 'No Content', 206 => 'Partial Content',
        400 => 'Bad Request', 401 => 'Unauthorized', 403 => 'Forbidden', 404 => 'Not Found',
        405 => 'Method Not Allowed', 406 => 'Not Acceptable', 408 => 'Request Timeout',
        409 => 'Conflict', 410 => 'Gone', 412 => 'Precondition Failed', 413 => 'Content Too Large', 415 => 'Unsupported Media Type', 422 => 'Unprocessable Content',
        423 => 'Locked', 428 => 'Precondition Required', 429 => 'Too Many Requests', 500 => 'Internal Server Error',
        501 => 'Not Implemented', 502 => 'Bad Gateway', 503 => 'Service Unavailable', 504 => 'Gateway Timeout',
    ];

    public static function ofException(HttpException $error, Request $request): Response
    {
        if ($error instanceof InvalidRequestException || self::isReadByProgram($request)) {
            $problem = $error->problem()->response();

            return new Response($problem->status, \array_change_key_case($error->headers) + $problem->headers, $problem->body);
        }
        $text = $error->getMessage();
        $page = $text === '' ? self::plain($error->status) : Response::text("$text\n", $error->status);

        return new Response($page->status, \array_change_key_case($error->headers) + $page->headers, $page->body);
    }

    /** The reason phrase, empty where none is known. */
    public static function reason(int $status): string
    {
        return self::REASONS[$status] ?? '';
    }

    public static function plain(int $status): Response
    {
        return Response::text(\rtrim("$status " . self::reason($status)) . "\n", $status);
    }

    /** The response to a failure that only the log explains. */
    public static function internalError(Request $request): Response
    {
        return self::isReadByProgram($request) ? (new Problem(500))->response() : self::plain(500);
    }

    private static function isReadByProgram(Request $request): bool
    {
        return $request->answersProblems || self::accepts($request, 'json') && !self::accepts($request, 'html');
    }

    private static function accepts(Request $request, string $format): bool
    {
        return \stripos($request->header('accept') ?? '', $format) !== false;
    }

    public static function unavailable(): Response
    {
        return self::plain(503)->withHeader('retry-after', '1');
    }

    /** For development. It shows what the log does. */
    public static function withTrace(\Throwable $error, Request $request): Response
    {
        return self::isReadByProgram($request) && !self::accepts($request, 'html')
            ? (new Problem(500, ExceptionReport::summary($error), extensions: ['exception' => ExceptionReport::fields($error)]))->response()
            : self::page($error::class . ': ' . $error->getMessage(), ExceptionReport::text($error, ''));
    }

    /** The same for what has ended the process. */
    public static function withReason(string $reason, Request $request): Response
    {
        if (self::isReadByProgram($request) && !self::accepts($request, 'html')) {
            return (new Problem(500, $reason))->response();
        }

        return self::page('The process has ended', $reason);
    }

    private static function page(string $title, string $text): Response
    {
        [$title, $text] = \array_map(static fn(string $text): string => \htmlspecialchars($text, \ENT_QUOTES | \ENT_SUBSTITUTE), [$title, $text]);

        return Response::html("<!doctype html><title>$title</title><h1>$title</h1><pre>$text</pre>\n", 500);
    }
}
