<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ordering;

use Weft\Bus\Header;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\Transport\Delivery;

/**
 * Runs one message per key at a time. Other messages of the key wait in order, without occupying the concurrency.
 *
 * @internal
 */
final class KeyQueues
{
    /** Length of the column for keys; keys made by the bus are shorter. */
    private const KEY_BYTES = 200;

    /** @var array<string, \SplQueue<Delivery>|null> waiting deliveries by busy key; null for none */
    private array $busy = [];

    /** @return bool whether it is its turn; otherwise {@see leave()} returns it when it is */
    public function enter(Delivery $delivery): bool
    {
        $key = self::key($delivery);
        if ($key === null || $this->reserve($key)) {
            return true;
        }
        ($this->busy[$key] ??= new \SplQueue())->enqueue($delivery);

        return false;
    }

    /** @return bool false when the key is busy */
    public function reserve(string $key): bool
    {
        if (\array_key_exists($key, $this->busy)) {
            return false;
        }
        $this->busy[$key] = null;

        return true;
    }

    /** @return Delivery|null the next of the key, whose turn it is now */
    public function leave(string $key): ?Delivery
    {
        $waiting = $this->busy[$key] ?? null;
        if ($waiting !== null && !$waiting->isEmpty()) {
            return $waiting->dequeue();
        }
        unset($this->busy[$key]);

        return null;
    }

    /** A message without an id cannot block a key and is not ordered. */
    public static function key(Delivery $delivery): ?string
    {
        $key = isset($delivery->headers[Header::MESSAGE_ID]) ? $delivery->headers[Header::ORDER_KEY] ?? null : null;

        return $key === null ? null : Identifier::fit($key, self::KEY_BYTES);
    }
}
