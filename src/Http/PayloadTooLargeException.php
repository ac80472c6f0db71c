<?php

declare(strict_types=1);

namespace Weft\Http;

/** 413: the body has more bytes than `BodyLimits::$bytes`, more values than a form may have, or JSON that would take too much memory. */
final class PayloadTooLargeException extends HttpException
{
    public function __construct(string $message = '', ?\Throwable $previous = null)
    {
        parent::__construct(413, $message, [], $previous);
    }
}
