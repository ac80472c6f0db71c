<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\MessageDecodingFailed;
use Weft\Bus\Transport\Delivery;

/**
 * Makes the message of a delivery.
 *
 * @internal
 */
final class Decoder
{
    /** @throws MessageDecodingFailed */
    public function decode(MessageClass $class, Delivery $delivery): object
    {
        $version = $delivery->headers[Header::SCHEMA_VERSION] ?? '1';
        if ($version !== '1' && (int) $version > $class->version) {
            throw MessageDecodingFailed::newerSchema($class->class, $class->version, (string) (int) $version);
        }

        return $class->decode($delivery->body);
    }
}
