<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Encodes and decodes values of one PHP type.
 *
 * @internal
 */
interface Type
{
    /**
     * @param mixed $value what json_decode() gave, objects as arrays
     * @throws MismatchException
     */
    public function decode(mixed $value): mixed;

    /**
     * @return mixed what json_encode() takes; objects as arrays or stdClass
     * @throws MismatchException
     */
    public function encode(mixed $value): mixed;

    /** @return string|array<string, mixed> what the JSON looks like, the same for types that read and write the same */
    public function schema(): string|array;

    /** The type as shown in error messages. */
    public function name(): string;
}
