<?php

declare(strict_types=1);

namespace Weft\Amqp;

use Weft\Internal\Number;
use Weft\UsageError;

/**
 * A message: body, headers and the properties of AMQP 0-9-1 §1.8.2. Immutable.
 *
 * A text property and the name of a header have at most 255 bytes, floats are finite, and all headers and properties must fit one frame
 * (128 KiB unless the broker or `frame_max` lowers it); publishing throws {@see UsageError} otherwise.
 */
final class Message
{
    /**
     * @param string $body any bytes
     * @param array<string, mixed> $headers null, bool, int, finite float, string, lists and maps of them up to 32 deep
     * @param ?string $contentType the media type of the body, such as `application/json`
     * @param ?string $contentEncoding how the body is compressed, such as `gzip`
     * @param ?string $messageId names the message; the broker does not read it
     * @param ?string $correlationId of a reply: the id of its request
     * @param ?string $replyTo the queue in which the sender waits for a reply
     * @param ?string $type what kind of message it is, for the receiver
     * @param ?string $appId the program that has sent it
     * @param ?int $priority 0…255; honoured by queues declared with `x-max-priority`
     * @param ?float $expiration seconds until a queue may drop it, 0 to 4,294,967, whole milliseconds count; 0 drops it unless a
     *     consumer is waiting
     * @param ?int $timestamp Unix time in seconds, at least 0
     * @param bool $persistent survives a restart of the broker, in a durable queue
     *
     * @throws \ValueError priority, expiration or timestamp out of bounds
     */
    public function __construct(
        public readonly string $body,
        public readonly array $headers = [],
        public readonly ?string $contentType = null,
        public readonly ?string $contentEncoding = null,
        public readonly ?string $messageId = null,
        public readonly ?string $correlationId = null,
        public readonly ?string $replyTo = null,
        public readonly ?string $type = null,
        public readonly ?string $appId = null,
        public readonly ?int $priority = null,
        public readonly ?float $expiration = null,
        public readonly ?int $timestamp = null,
        public readonly bool $persistent = true,
    ) {
        if ($priority !== null && ($priority < 0 || $priority > 255)) {
            throw new \ValueError("The priority of a message must be 0 to 255, got {$priority}");
        }
        if ($expiration !== null && !($expiration >= 0.0 && $expiration <= 4_294_967.0)) {
            throw new \ValueError('The expiration of a message must be 0 to 4,294,967 seconds, got ' . Number::text($expiration));
        }
        if ($timestamp !== null && $timestamp < 0) {
            throw new \ValueError("The timestamp of a message must not be negative, got {$timestamp}");
        }
    }
}
