<?php

declare(strict_types=1);

namespace Weft\Http;

final class WebSocketMessage
{
    /**
     * @param string $data UTF-8 unless the message is binary
     * @param bool $isBinary whether it is bytes, and not text
     */
    public function __construct(public readonly string $data, public readonly bool $isBinary = false)
    {
    }
}
