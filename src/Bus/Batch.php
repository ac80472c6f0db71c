<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Beside {@see CommandHandler} or {@see EventListener}: the method takes many messages of one class at a time, as an array of
 * {@see BatchItem}, and instead of the context further parameters as any handler does. Its Transaction is that of all items:
 * what they do, that they were handled and what they send is committed once.
 *
 * An item that the handler fails ({@see BatchItem::fail()}) goes its way alone, to a retry or the dead letters, and the others
 * count as handled. When the method throws, nothing has happened; it is called again for each half of the batch, until the
 * items at fault are alone. The time-out is that of a call; {@see Middleware} does not run. It has to be the only
 * handler of its message in a bus.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class Batch
{
    /**
     * @param class-string $of     the class of the messages
     * @param int<1, max>  $size   most items; the prefetch should be at least twice as much, since only messages that are here
     *                             can be batched
     * @param float        $window most seconds the first item waits for the others
     */
    public function __construct(
        public readonly string $of,
        public readonly int $size = 100,
        public readonly float $window = 0.01,
    ) {
        if ($size < 1) {
            throw new \ValueError("The size of a batch must be at least 1, got {$size}");
        }
        if (\is_nan($window) || $window < 0.0 || $window === \INF) {
            throw new \ValueError("The window of a batch must be finite and at least 0 seconds, got {$window} seconds");
        }
    }
}
