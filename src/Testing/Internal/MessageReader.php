<?php

declare(strict_types=1);

namespace Weft\Testing\Internal;

use Weft\Bus\BusOptions;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageCompiler;
use Weft\Bus\Internal\Codec\MessageRules;
use Weft\Bus\Internal\Decoder;
use Weft\Bus\Internal\Schema\Upcasters;
use Weft\Bus\Internal\Sending\BodyStore;
use Weft\Bus\Internal\Serializing\DeliveryOpener;
use Weft\Bus\Transport\Delivery;

/**
 * Decodes messages for assertions, as the bus under test does. Its classes are not those of the bus, which must not know a class because a
 * test asks for it.
 *
 * @internal
 */
final class MessageReader
{
    private readonly Codec $codec;
    private readonly Decoder $decoder;

    public function __construct(BusOptions $options)
    {
        $messages = $options->messages;
        $this->codec = new Codec(MessageCompiler::ofBus($messages->keys), new MessageRules($messages->serializers, $messages->routes));
        $this->decoder = new Decoder(new Upcasters($this->codec), $this->codec, new BodyStore($messages->claims));
    }

    /**
     * @template T of object
     *
     * @param class-string<T>       $class
     * @param array<string, string> $headers
     * @return T|null null when the message is of another class
     */
    public function read(string $class, string $type, string $body, array $headers): ?object
    {
        $known = $this->codec->of($class);
        $delivery = new Delivery(0, $type, $body, $headers, redelivered: false);
        if ($known->serializer !== null) {
            $delivery = (new DeliveryOpener([$known->serializer], $this->codec))->open($delivery);
        }
        if ($delivery->type !== $known->type) {
            return null;
        }

        /** @var T */
        return $this->decoder->decode($known, $delivery);
    }
}
