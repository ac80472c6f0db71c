<?php

declare(strict_types=1);

namespace Weft\Bus;

/** How long {@see DeliveryGuarantee::Transactional} remembers, and when it takes a worker for crashed. */
final class InboxOptions
{
    /**
     * @param float      $retention  seconds a handled message is remembered: one delivered again later than that has its
     *                               effect again. One inbox row per message and handler is kept for so long
     * @param float      $relayAfter seconds after which a committed message that its worker has not sent is sent by the
     *                               relay; it may then arrive twice, and is recognised by its id
     * @param int<1,max> $maxCrashes    how often a message may be delivered again, because whoever handled it went away
     *                               without an answer, before it is parked. Counted for all workers together
     */
    public function __construct(
        public readonly float $retention = 7 * 86_400.0,
        public readonly float $relayAfter = 3.0,
        public readonly int $maxCrashes = 5,
    ) {
        if (!($retention >= 60.0)) {
            throw new \ValueError("The retention of handled messages must be at least 60 seconds, got {$retention}");
        }
        if (!($relayAfter >= 0.1)) {
            throw new \ValueError("relayAfter must be at least 0.1 seconds, got {$relayAfter}");
        }
        if ($maxCrashes < 1) {
            throw new \ValueError("maxCrashes must be at least 1, got {$maxCrashes}");
        }
    }
}
