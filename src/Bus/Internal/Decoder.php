<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\Schema\Upcasters;
use Weft\Bus\MessageDecodingFailed;
use Weft\Bus\Transport\Delivery;

/**
 * Makes the message of a delivery.
 *
 * @internal
 */
final class Decoder
{
    public function __construct(public readonly Upcasters $upcasters) {}

    /** @throws MessageDecodingFailed */
    public function decode(MessageClass $class, Delivery $delivery): object
    {
        $header = $delivery->headers[Header::SCHEMA_VERSION] ?? '1';
        $version = (int) $header;
        if ($version === $class->version) {
            return $class->decode($delivery->body);
        }
        if ($version < 1 || (string) $version !== $header) {
            throw MessageDecodingFailed::noVersion($class->class, $header);
        }
        if ($version > $class->version) {
            throw MessageDecodingFailed::newerSchema($class->class, $class->version, $header);
        }

        return $class->decode($delivery->body, fn(array $data): array => $this->upcasters->bring($class, $data, $version));
    }
}
