<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Symfony\Component\HttpFoundation\Response as SymfonyResponse;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Weft\Http\BodyWriter;
use Weft\Http\Response;

/**
 * Responses of Symfony's HttpFoundation, which Laravel's are too, as those of the server.
 *
 * @internal
 */
final class SymfonyResponses
{
    /** A streamed response and a file are read while the server writes the body. */
    public static function convert(SymfonyResponse $answer): Response
    {
        /** @var array<string, list<?string>> $fields */
        $fields = $answer->headers->all();
        unset($fields['transfer-encoding']);
        foreach ($fields as $name => $values) {
            if (\in_array(null, $values, true)) {
                $fields[$name] = \array_map(\strval(...), $values);
            }
        }

        /** @var array<string, list<string>> $fields */
        return new Response($answer->getStatusCode(), $fields, self::body($answer));
    }

    /** Streams and files write to the output, which becomes the chunks of the body. */
    private static function body(SymfonyResponse $answer): string|\Closure
    {
        $content = $answer instanceof StreamedResponse ? false : $answer->getContent();
        if ($content !== false) {
            return $content;
        }

        return static fn(BodyWriter $writer) => StreamedOutput::copy($answer->sendContent(...), $writer);
    }
}
