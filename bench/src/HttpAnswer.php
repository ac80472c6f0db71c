<?php

declare(strict_types=1);

namespace Weft\Bench;

/**
 * What the `http` stream of PHP has received. The variable in which `file_get_contents()` leaves the headers is deprecated since PHP 8.5, and the
 * function that replaces it is missing before PHP 8.4.
 */
final class HttpAnswer
{
    /**
     * @param int               $status  0 without an answer
     * @param list<string>      $headers the status line first
     * @param string|false      $body    false without an answer
     */
    private function __construct(public readonly int $status, public readonly array $headers, public readonly string|false $body)
    {
    }

    /** @param array<string, mixed> $options of the `http` context; an answer with an error has its body, too */
    public static function of(string $url, array $options = []): self
    {
        $stream = fopen($url, 'r', false, stream_context_create(['http' => $options + ['ignore_errors' => true]]));
        if ($stream === false) {
            return new self(0, [], false);
        }
        $headers = array_values(stream_get_meta_data($stream)['wrapper_data']);
        $body = stream_get_contents($stream);
        preg_match('{^HTTP/\S+ (\d+)}', $headers[0] ?? '', $status);

        return new self((int) ($status[1] ?? 0), $headers, $body);
    }
}
