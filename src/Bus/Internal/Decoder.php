<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\ClaimLostException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\Schema\Upcasters;
use Weft\Bus\Internal\Sending\BodyStore;
use Weft\Bus\Internal\Serializing\MessageNormalizer;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\Serializer;
use Weft\Bus\Serializer\Envelope;
use Weft\Bus\Transport\Delivery;
use Weft\Runtime\CancelledException;

/**
 * Decodes the message of a delivery.
 *
 * @internal
 */
final class Decoder
{
    public function __construct(
        public readonly Upcasters $upcasters,
        private readonly Codec $codec,
        private readonly BodyStore $claims,
    ) {}

    /** @throws MessageDecodingException|ClaimLostException */
    public function decode(MessageClass $class, Delivery $delivery): object
    {
        if ($delivery->damage !== null) {
            throw $delivery->damage;
        }
        $serializer = $delivery->serializer ?? (isset($delivery->headers[Header::CONTENT_TYPE]) || !$class->hasJson() ? $class->serializer : null);
        if ($serializer !== null) {
            return $this->read($serializer, $class, $delivery);
        }
        $header = $delivery->headers[Header::SCHEMA_VERSION] ?? '1';
        $version = (int) $header;
        $id = $delivery->headers[Header::MESSAGE_ID] ?? '';
        $body = $this->body($class, $delivery);
        if ($version === $class->version) {
            return $class->decode($body, id: $id);
        }
        self::check($class, $version, $header);

        return $class->decode($body, fn(array $data): array => $this->upcasters->bring($class, $data, $version), $id);
    }

    /** By a format other than the bus's own. Its messages of unknown version are taken for the current one. */
    private function read(Serializer $serializer, MessageClass $class, Delivery $delivery): object
    {
        $header = $delivery->headers[Header::SCHEMA_VERSION] ?? null;
        $header === null || self::check($class, (int) $header, $header);
        $envelope = new Envelope($delivery->type, $this->body($class, $delivery), $delivery->headers);
        $normalizer = new MessageNormalizer($this->codec, $this->upcasters, $class, $delivery->headers[Header::MESSAGE_ID] ?? '', $header === null ? null : (int) $header);
        $wanted = $class->class;
        try {
            return self::expected($serializer, $wanted, $serializer->decode($envelope, $wanted, $normalizer));
        } catch (MessageDecodingException | CancelledException $thrown) {
            throw $thrown;
        } catch (\Throwable $thrown) {
            throw MessageDecodingException::because($wanted, $serializer::class . ' failed: ' . $thrown->getMessage(), $thrown);
        }
    }

    private static function expected(Serializer $serializer, string $class, object $message): object
    {
        $found = $message::class;

        return $message instanceof $class ? $message : throw MessageDecodingException::because($class, $serializer::class . " returned a {$found}");
    }

    private function body(MessageClass $class, Delivery $delivery): string
    {
        return isset($delivery->headers[Header::CLAIM]) ? $this->claims->load($class->class, $delivery->headers, $delivery->body) : $delivery->body;
    }

    private static function check(MessageClass $class, int $version, string $header): void
    {
        if ($version < 1 || (string) $version !== $header) {
            throw MessageDecodingException::noVersion($class->class, $header);
        }
        if ($version > $class->version) {
            throw MessageDecodingException::newerSchema($class->class, $class->version, $header);
        }
    }
}
