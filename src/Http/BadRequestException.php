<?php

declare(strict_types=1);

namespace Weft\Http;

/** 400: the request is not what it should be. */
final class BadRequestException extends HttpException
{
    public function __construct(string $message = '', ?\Throwable $previous = null)
    {
        parent::__construct(400, $message, [], $previous);
    }
}
