<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\ClaimLostException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\Schema\Upcasters;
use Weft\Bus\Internal\Sending\BodyStore;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\Transport\Delivery;

/**
 * Decodes the message of a delivery.
 *
 * @internal
 */
final class Decoder
{
    public function __construct(
        public readonly Upcasters $upcasters,
        private readonly BodyStore $claims,
    ) {}

    /** @throws MessageDecodingException|ClaimLostException */
    public function decode(MessageClass $class, Delivery $delivery): object
    {
        $header = $delivery->headers[Header::SCHEMA_VERSION] ?? '1';
        $version = (int) $header;
        $id = $delivery->headers[Header::MESSAGE_ID] ?? '';
        $body = isset($delivery->headers[Header::CLAIM]) ? $this->claims->load($class->class, $delivery->headers, $delivery->body) : $delivery->body;
        if ($version === $class->version) {
            return $class->decode($body, id: $id);
        }
        if ($version < 1 || (string) $version !== $header) {
            throw MessageDecodingException::noVersion($class->class, $header);
        }
        if ($version > $class->version) {
            throw MessageDecodingException::newerSchema($class->class, $class->version, $header);
        }

        return $class->decode($body, fn(array $data): array => $this->upcasters->bring($class, $data, $version), $id);
    }
}
