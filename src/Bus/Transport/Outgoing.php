<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

/** An encoded message on its way to the broker. */
final class Outgoing
{
    /**
     * @param string                $type      routes it
     * @param array<string, string> $headers   see {@see \Weft\Bus\Header}
     * @param bool                  $mustRoute whether it is an error that no queue is bound to its type
     */
    public function __construct(
        public readonly string $type,
        public readonly string $body,
        public readonly array $headers,
        public readonly bool $mustRoute = false,
    ) {}
}
