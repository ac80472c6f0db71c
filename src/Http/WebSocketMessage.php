<?php

declare(strict_types=1);

namespace Weft\Http;

final class WebSocketMessage
{
    /** @param string $data UTF-8 unless the message is binary */
    public function __construct(public readonly string $data, public readonly bool $isBinary = false)
    {
    }
}
