<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

/** Ids that follow the clock (version 7, RFC 9562 §5.7), so that new rows land side by side in the index. */
final class Uuid
{
    public static function next(): string
    {
        $hex = \bin2hex(\substr(\pack('J', (int) (\microtime(true) * 1000)), 2) . \random_bytes(10));
        $hex[12] = '7';
        $hex[16] = '89ab'[\hexdec($hex[16]) & 3];

        return \vsprintf('%s%s-%s-%s-%s-%s%s%s', \str_split($hex, 4));
    }

    public static function isValid(string $text): bool
    {
        return \preg_match('/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/Di', $text) === 1;
    }
}
