<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Bus\Header;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Bytes;

/**
 * A message as a row of the outbox.
 *
 * @internal
 */
final class OutboxRow
{
    public const INSERT = 'INSERT INTO weft_outbox (id, type, must_route, headers, body, cause) VALUES ';

    /** Bytes of an id. */
    private const MAX_ID = 64;

    /** @return list<mixed> the values of {@see self::INSERT} */
    public static function of(Outgoing $message): array
    {
        return [
            Persistence::idOf($message->headers),
            $message->type,
            (int) $message->mustRoute,
            Headers::encode($message->headers),
            new Bytes($message->body),
            isset($message->headers[Header::ORDER_KEY]) ? self::cause($message->headers) : null,
        ];
    }

    /**
     * The id of the message whose handlers have sent the one with these headers, by which {@see OutboxRelay::settleOrder()} finds it: its
     * causation id or, if it was caused by the first message of all, its correlation id. Empty if neither is an id.
     *
     * @param array<string, string> $headers
     */
    private static function cause(array $headers): string
    {
        $cause = $headers[Header::CAUSATION_ID] ?? $headers[Header::CORRELATION_ID] ?? '';

        return \strlen($cause) <= self::MAX_ID ? $cause : '';
    }
}
