<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;

/**
 * Detects the end of a queue: a busy broker may respond later than any reasonable timeout.
 *
 * @internal
 */
final class RemainingDeliveries
{
    /** Seconds for messages that have arrived to be handed over. */
    private const HANDOVER_TIMEOUT = 0.01;

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
            $deliveries = $consumer->next($max, self::HANDOVER_TIMEOUT);
        }

        return $deliveries;
    }
}
