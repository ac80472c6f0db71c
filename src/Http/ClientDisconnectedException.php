<?php

declare(strict_types=1);

namespace Weft\Http;

/** The client went away in the middle of the request or of the response. Nobody is left to be answered. */
final class ClientDisconnectedException extends HttpException
{
    public function __construct(string $message = '', ?\Throwable $previous = null)
    {
        parent::__construct(400, $message, [], $previous);
    }
}
