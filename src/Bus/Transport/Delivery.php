<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Bus\Serializer;

/** A message as delivered by the broker. */
final class Delivery
{
    /** @internal how often it was delivered again because its worker had ended, as far as a database has counted that */
    public int $redeliveries = 0;

    /**
     * @param int                   $tag         identifies the delivery at its consumer
     * @param array<string, string> $headers     see {@see \Weft\Bus\Header}
     * @param bool                  $redelivered whether it may have been delivered before
     * @param array<string, mixed>  $extra       properties that only the transport understands, kept in the dead letter
     * @param Serializer|null       $serializer  the format of the queue that the body is in; null for that of the message class
     * @param \Throwable|null       $damage      why the message cannot be read
     */
    public function __construct(
        public readonly int $tag,
        public readonly string $type,
        public readonly string $body,
        public readonly array $headers,
        public readonly bool $redelivered,
        public readonly array $extra = [],
        public readonly ?Serializer $serializer = null,
        public readonly ?\Throwable $damage = null,
    ) {}

    /**
     * @internal
     *
     * @param array<string, string> $headers
     */
    public function openedBy(Serializer $serializer, string $type, array $headers): self
    {
        return new self($this->tag, $type, $this->body, $headers, $this->redelivered, $this->extra, $serializer);
    }

    /** @internal */
    public function tagged(int $tag): self
    {
        return new self($tag, $this->type, $this->body, $this->headers, $this->redelivered, $this->extra, $this->serializer, $this->damage);
    }

    /** @internal */
    public function unreadable(\Throwable $damage): self
    {
        return new self($this->tag, $this->type, $this->body, $this->headers, $this->redelivered, $this->extra, damage: $damage);
    }
}
