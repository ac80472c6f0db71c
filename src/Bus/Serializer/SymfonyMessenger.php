<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

use Weft\Bus\EnvelopeSerializer;
use Weft\Bus\Header;
use Weft\Bus\Internal\Serializing\JsonObject;
use Weft\Bus\Internal\Serializing\MediaType;

/**
 * The JSON of symfony/messenger, as `messenger.transport.symfony_serializer` writes and reads it: the class in the header `type`, the
 * properties in the body, stamps in `X-Message-Stamp-…` headers.
 *
 * Stamps of a received message stay headers of it, in retries and dead letters, too; a handler reads them with `$context->header()`.
 * Messages of Symfony have no id: without one, duplicates are not recognised. Bodies of its `PhpSerializer`, the default, contain
 * serialized PHP objects, which are never unserialized: such messages are moved to the dead-letter queue.
 */
final class SymfonyMessenger implements EnvelopeSerializer
{
    private const BUS_NAME_STAMP = 'X-Message-Stamp-Symfony\Component\Messenger\Stamp\BusNameStamp';

    /** @var array<class-string, string> */
    private readonly array $names;

    /**
     * @param array<string, class-string> $classes classes of this program by the names of the classes in Symfony's; others have the same
     *                                             name in both
     * @param string|null                 $bus     the bus that handles sent messages in a Symfony application with several, such as
     *                                             `command.bus`
     */
    public function __construct(
        private readonly array $classes = [],
        private readonly ?string $bus = null,
    ) {
        $this->names = \array_flip($classes);
    }

    public function contentType(): string
    {
        return 'application/json';
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        $stamps = $this->bus === null ? [] : [self::BUS_NAME_STAMP => JsonObject::list([['busName' => $this->bus]])];

        return $envelope->with(
            body: JsonObject::encode($message::class, $normalizer->normalize($message)),
            headers: ['type' => $this->names[$message::class] ?? $message::class] + $stamps,
        );
    }

    public function open(Envelope $received): ?Envelope
    {
        $type = $received->header('type');
        if ($type === null || $type === '' || !MediaType::isJson($received->header(Header::CONTENT_TYPE) ?? 'application/json')) {
            return null;
        }

        return $received->with(type: $this->classes[$type] ?? $type);
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        return $normalizer->denormalize($class, JsonObject::decode($class, $envelope->body));
    }
}
