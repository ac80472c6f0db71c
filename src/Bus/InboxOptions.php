<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Number;

/** Options of {@see DeliveryGuarantee::Transactional}. */
final class InboxOptions
{
    /**
     * @param float      $retention  seconds a handled message is remembered, at least 60. A message that is redelivered later than that takes effect again.
     *                               The inbox stores one row per message and handler for this time. Lower it where that is too much, raise it where
     *                               messages may come back later
     * @param float      $relayAfter seconds after which the outbox relay publishes a committed message that its worker has not
     *                               published, at least 0.1 and at most 86,400. The message may be published twice and is recognised by its id. Raise it where
     *                               publishing regularly takes longer
     * @param int<1,max> $maxCrashes how often a message may be redelivered because its worker ended without an acknowledgement, until it
     *                               is dead-lettered; counted for all workers together. Lower it where a crash is expensive, raise it where workers
     *                               are killed often
     */
    public function __construct(
        public readonly float $retention = 7 * 86_400.0,
        public readonly float $relayAfter = 3.0,
        public readonly int $maxCrashes = 5,
    ) {
        if (!($retention >= 60.0)) {
            throw new \ValueError('The retention of handled messages must be at least 60 seconds, got ' . Number::text($retention));
        }
        if (!($relayAfter >= 0.1 && $relayAfter <= 86_400.0)) {
            throw new \ValueError('relayAfter must be at least 0.1 and at most 86,400 seconds, got ' . Number::text($relayAfter));
        }
        if ($maxCrashes < 1) {
            throw new \ValueError("maxCrashes must be at least 1, got {$maxCrashes}");
        }
    }
}
