<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageEncodingException;

/**
 * Turns message objects into arrays of scalars and back, by the rules of the bus: types are checked, constructors are not called,
 * `#[Encrypted]` properties are encrypted, upcasters run. Made by the bus for one message.
 */
interface Normalizer
{
    /**
     * @return array<string, mixed> null, scalars and arrays of these, by property name
     *
     * @throws MessageEncodingException when a property has a value that JSON cannot represent
     */
    public function normalize(object $message): array;

    /**
     * @template T of object
     *
     * @param class-string<T>      $class
     * @param array<string, mixed> $data  by property name; other keys are ignored
     * @return T
     *
     * @throws MessageDecodingException when a property is missing or has another type
     */
    public function denormalize(string $class, array $data): object;
}
