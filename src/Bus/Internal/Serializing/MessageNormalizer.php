<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Serializing;

use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\Schema\Upcasters;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\Serializer\Normalizer;

/**
 * Normalizes the object of one message by the rules of the bus.
 *
 * @internal
 */
final class MessageNormalizer implements Normalizer
{
    /**
     * @param string   $id      of the message, which encrypted values are bound to; empty where there is none
     * @param int|null $version of its schema; null for that of the class
     */
    public function __construct(
        private readonly Codec $codec,
        private readonly ?Upcasters $upcasters,
        private readonly MessageClass $message,
        private readonly string $id,
        private readonly ?int $version = null,
    ) {}

    public function normalize(object $message): array
    {
        return (array) $this->codec->of($message::class)->normalize($message, $this->id);
    }

    public function denormalize(string $class, array $data): object
    {
        $known = $this->codec->of($class);
        if ($known === $this->message && $this->version !== null && $this->version < $known->version) {
            $data = $this->upcasters?->bring($known, $data, $this->version) ?? $data;
        }
        $object = $known->denormalize($data, $this->id);

        return $object instanceof $class ? $object : throw MessageDecodingException::because($class, 'an upcaster changed its class');
    }
}
