<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

/** A message as delivered by the broker. */
final class Delivery
{
    /**
     * @param int                   $tag         identifies the delivery at its consumer
     * @param array<string, string> $headers     see {@see \Weft\Bus\Header}
     * @param bool                  $redelivered whether it may have been delivered before
     * @param array<string, mixed>  $extra       properties that only the transport understands, kept in the dead letter
     */
    public function __construct(
        public readonly int $tag,
        public readonly string $type,
        public readonly string $body,
        public readonly array $headers,
        public readonly bool $redelivered,
        public readonly array $extra = [],
    ) {}
}
