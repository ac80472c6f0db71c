<?php

declare(strict_types=1);

namespace Weft\Http;

/** 404: no resource has that path. */
final class NotFoundException extends HttpException
{
    public function __construct(string $message = '', ?\Throwable $previous = null)
    {
        parent::__construct(404, $message, [], $previous);
    }
}
