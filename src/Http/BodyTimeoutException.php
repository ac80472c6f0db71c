<?php

declare(strict_types=1);

namespace Weft\Http;

/** 408: the client stopped sending its body. */
final class BodyTimeoutException extends HttpException
{
    public function __construct(string $message = '', ?\Throwable $previous = null)
    {
        parent::__construct(408, $message, [], $previous);
    }
}
