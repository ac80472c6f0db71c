<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

/** An encoded message to be published. */
final class Outgoing
{
    /**
     * @param string                $type      the routing key
     * @param array<string, string> $headers   see {@see \Weft\Bus\Header}
     * @param bool                  $mustRoute whether publishing fails when no queue is bound to the type
     */
    public function __construct(
        public readonly string $type,
        public readonly string $body,
        public readonly array $headers,
        public readonly bool $mustRoute = false,
    ) {}
}
