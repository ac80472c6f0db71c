<?php

declare(strict_types=1);

namespace Weft\Protobuf;

/** Bytes, or JSON, that are not the message they should be. Names the message and the field, never a value. */
final class DecodingException extends ProtobufException
{
    /**
     * @internal thrown by the codec
     *
     * @param bool $isTooLarge whether the values take more memory than the limit of this decoding
     */
    public function __construct(string $message = '', int $code = 0, ?\Throwable $previous = null, public readonly bool $isTooLarge = false)
    {
        parent::__construct($message, $code, $previous);
    }
}
