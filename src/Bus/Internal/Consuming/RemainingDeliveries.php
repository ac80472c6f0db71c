<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;

/**
 * The end of a queue: a busy broker may take longer than any time that one would wait for nothing.
 *
 * @internal
 */
final class RemainingDeliveries
{
    /** Seconds for what has just come to be handed on. */
    private const HAND = 0.01;

    /**
     * As {@see Consumer::next()}, but for a broker that is slow to answer.
     *
     * @param positive-int $max
     * @param float $linger seconds
     * @return list<Delivery> empty when the broker has nothing for this consumer
     */
    public static function next(Consumer $consumer, int $max, float $linger): array
    {
        $deliveries = $consumer->next($max, $linger);
        if ($deliveries === [] && $consumer instanceof RemoteConsumer) {
            $consumer->catchUp();
            $deliveries = $consumer->next($max, self::HAND);
        }

        return $deliveries;
    }
}
