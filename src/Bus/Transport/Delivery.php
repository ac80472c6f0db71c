<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

/** A message as the broker delivered it. */
final class Delivery
{
    /**
     * @param int                   $tag         names the delivery to the consumer that made it
     * @param array<string, string> $headers     see {@see \Weft\Bus\Header}
     * @param bool                  $redelivered whether it may have been delivered before
     * @param array<string, mixed>  $extra       what only its transport understands, for when it parks the message
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
