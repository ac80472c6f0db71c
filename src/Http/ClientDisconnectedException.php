<?php

declare(strict_types=1);

namespace Weft\Http;

/** The client has disconnected before the end of the request or of the response. */
final class ClientDisconnectedException extends HttpException
{
    public function __construct(string $message = '', ?\Throwable $previous = null)
    {
        parent::__construct(400, $message, [], $previous);
    }
}
