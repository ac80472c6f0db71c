<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Number;

/**
 * Beside {@see CommandHandler} or {@see EventListener}: the method handles many messages of one class per call. Its first parameter
 * is an array of {@see BatchItem}; further parameters are those of any handler except {@see Context}. A Transaction parameter is
 * shared by all items: their effects, their inbox rows and what they send commit together.
 *
 * An item that the handler fails ({@see BatchItem::fail()}) is retried or dead-lettered alone; the other items succeed. When the
 * method throws, the transaction is rolled back and the method is called again with each half of the batch, until the items that
 * fail are alone. The timeout applies to one call. {@see Middleware} does not run. A batch handler must be the only handler of its
 * message class.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class Batch
{
    /**
     * @param class-string $of     the class of the messages
     * @param int<1, max>  $size   items per call at most; set the prefetch to at least twice as much
     * @param float        $window seconds that the first item waits for more, at least 0
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
            throw new \ValueError('The window of a batch must be finite and at least 0 seconds, got ' . Number::text($window) . ' seconds');
        }
    }
}
