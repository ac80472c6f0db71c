<?php

declare(strict_types=1);

namespace Weft\Http;

/** The client has stopped sending the body: the response is 408 Request Timeout. */
final class BodyTimeoutException extends HttpException
{
    public function __construct(string $message = '', ?\Throwable $previous = null)
    {
        parent::__construct(408, $message, [], $previous);
    }
}
