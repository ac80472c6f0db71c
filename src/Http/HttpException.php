<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * An exception with an HTTP status. Thrown by a handler it becomes the response, with its message as the text:
 * `throw new HttpException(409, 'The name is taken')`. If the handler is typed (its signature has `#[Body]`, `#[Query]`, `#[Header]` or
 * `#[Path]`, or says that it returns data), or if the client accepts JSON and no HTML, the response is problem details ({@see Problem}).
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

    /** The problem details it becomes; a subclass may say more. */
    public function problem(): Problem
    {
        return new Problem($this->status, $this->getMessage());
    }
}
