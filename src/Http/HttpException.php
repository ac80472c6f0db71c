<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * A failure with a status: thrown by a handler it becomes the answer, with its message as the text.
 */
class HttpException extends ServerException
{
    /**
     * @param int $status 400 to 599
     * @param string $message for the client to read
     * @param array<string, string|int|list<string>> $headers
     */
    public function __construct(
        public readonly int $status,
        string $message = '',
        public readonly array $headers = [],
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }
}
