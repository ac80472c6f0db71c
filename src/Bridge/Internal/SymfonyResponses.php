<?php

declare(strict_types=1);

namespace Weft\Bridge\Internal;

use Symfony\Component\HttpFoundation\BinaryFileResponse;
use Symfony\Component\HttpFoundation\Response as SymfonyResponse;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Weft\Http\BodyWriter;
use Weft\Http\Internal\FileBody;
use Weft\Http\Internal\StreamedOutput;
use Weft\Http\Response;
use Weft\Native\HttpFile;

/**
 * Responses of Symfony's HttpFoundation, which Laravel's are too, as those of the server.
 *
 * @internal
 */
final class SymfonyResponses
{
    /** A streamed response is made, and a file is read, while the server writes the body. */
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

        $file = $answer instanceof BinaryFileResponse ? self::file($answer) : null;
        if ($file !== null) {
            // The extension answers ranges of the request itself, with the validators of these fields.
            unset($fields['content-length'], $fields['content-range'], $fields['accept-ranges']);

            /** @var array<string, list<string>> $fields */
            return new Response($answer->getStatusCode() === 206 ? 200 : $answer->getStatusCode(), $fields, $file);
        }

        /** @var array<string, list<string>> $fields */
        return new Response($answer->getStatusCode(), $fields, self::body($answer));
    }

    /** Null where the response prints its body itself: nothing for HEAD or X-Sendfile, a file that is not a regular one, a subclass. */
    private static function file(BinaryFileResponse $answer): ?FileBody
    {
        $printsItself = (new \ReflectionMethod($answer, 'sendContent'))->class !== BinaryFileResponse::class;
        $path = $answer->getFile()->getPathname();
        // Newer versions have files in memory.
        $isInMemory = \property_exists(BinaryFileResponse::class, 'tempFileObject') && self::property($answer, 'tempFileObject') !== null;
        if ($printsItself || $isInMemory || self::property($answer, 'maxlen') === 0 || !$answer->isSuccessful() || !\is_file($path)) {
            return null;
        }

        return new FileBody(HttpFile::open($path), self::property($answer, 'deleteFileAfterSend') === true ? $path : null);
    }

    private static function property(BinaryFileResponse $answer, string $name): mixed
    {
        return (new \ReflectionProperty(BinaryFileResponse::class, $name))->getValue($answer);
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
