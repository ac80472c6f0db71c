<?php

declare(strict_types=1);

namespace Weft\Http;

/** The request is malformed: the response is 400 Bad Request. */
final class BadRequestException extends HttpException
{
    public function __construct(string $message = '', ?\Throwable $previous = null)
    {
        parent::__construct(400, $message, [], $previous);
    }
}
