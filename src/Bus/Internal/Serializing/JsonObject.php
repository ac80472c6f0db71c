<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Serializing;

use Weft\Internal\Codec\MismatchException;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageEncodingException;

/**
 * JSON objects as bodies of messages.
 *
 * @internal
 */
final class JsonObject
{
    /** json_decode() accepts one level less than json_encode() with the same number. */
    private const MAX_DEPTH = 511;

    private const FLAGS = \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION;

    /**
     * @param array<string, mixed> $data
     * @throws MessageEncodingException
     */
    public static function encode(string $class, array $data): string
    {
        $json = \json_encode($data === [] ? new \stdClass() : $data, self::FLAGS, self::MAX_DEPTH);

        return $json === false ? throw MessageEncodingException::at($class, '$', \json_last_error_msg()) : $json;
    }

    /** @param list<mixed> $values that JSON can represent */
    public static function list(array $values): string
    {
        return (string) \json_encode($values, self::FLAGS, self::MAX_DEPTH);
    }

    /**
     * @return array<string, mixed>
     * @throws MessageDecodingException
     */
    public static function decode(string $class, string $json): array
    {
        $data = \json_decode($json, true);
        if (\is_array($data) && ($data === [] || !\array_is_list($data))) {
            /** @var array<string, mixed> */
            return $data;
        }
        throw \json_last_error() === \JSON_ERROR_NONE
            ? MessageDecodingException::mismatch($class, '$', 'object', MismatchException::typeOf($data))
            : MessageDecodingException::malformed($class, \json_last_error_msg());
    }
}
