<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

use Weft\Bus\Header;
use Weft\Bus\Priority;
use Weft\Bus\Transport\Delivery;

/**
 * Fetched deliveries that have not started: highest priority first, and equal priorities in rotation over the tenants.
 *
 * @internal
 */
final class FairQueue
{
    /** @var array<int, array<string, \SplQueue<Delivery>>> by priority and tenant; whose turn it is next comes first */
    private array $waiting = [];

    private int $count = 0;

    public function add(Delivery $delivery): void
    {
        $priority = (int) ($delivery->headers[Header::PRIORITY] ?? Priority::NORMAL);
        // The prefix keeps numeric keys strings: renumbering would change the order.
        $tenant = 'k' . ($delivery->headers[Header::FAIR_KEY] ?? '');
        if (!isset($this->waiting[$priority])) {
            $this->waiting[$priority] = [];
            \krsort($this->waiting);
        }
        $this->waiting[$priority][$tenant] ??= new \SplQueue();
        $this->waiting[$priority][$tenant]->enqueue($delivery);
        $this->count++;
    }

    public function isEmpty(): bool
    {
        return $this->count === 0;
    }

    public function take(): ?Delivery
    {
        foreach ($this->waiting as $priority => $tenants) {
            foreach ($tenants as $tenant => $queue) {
                $delivery = $queue->dequeue();
                unset($tenants, $this->waiting[$priority][$tenant]);
                if (!$queue->isEmpty()) {
                    $this->waiting[$priority][$tenant] = $queue;
                } elseif ($this->waiting[$priority] === []) {
                    unset($this->waiting[$priority]);
                }
                $this->count--;

                return $delivery;
            }
        }

        return null;
    }
}
