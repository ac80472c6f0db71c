<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal;

use Weft\Protobuf\Codec;
use Weft\Protobuf\Message;

/**
 * Packing and unpacking of a `google.protobuf.Any`.
 *
 * @internal
 */
trait AnyMethods
{
    public static function pack(Message $message): self
    {
        return new self('type.googleapis.com/' . $message::typeName(), Codec::encode($message));
    }

    /** @param class-string<Message> $class */
    public function is(string $class): bool
    {
        return \substr((string) \strrchr("/{$this->typeUrl}", '/'), 1) === $class::typeName();
    }

    /**
     * @template T of Message
     *
     * @param class-string<T> $class
     *
     * @return T|null null if it holds another message
     */
    public function unpack(string $class): ?Message
    {
        return $this->is($class) ? Codec::decode($class, $this->value) : null;
    }
}
