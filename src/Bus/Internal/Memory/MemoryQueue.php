<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Memory;

use Weft\Bus\Internal\Wakeup;
use Weft\Bus\Transport\Delivery;

/** @internal */
final class MemoryQueue
{
    private static int $lastTag = 0;

    /** @var \SplDoublyLinkedList<Delivery> */
    private readonly \SplDoublyLinkedList $ready;

    public readonly Wakeup $arrival;

    /** @param FaultInjector|null $faults null delivers the oldest first */
    public function __construct(string $name, private readonly ?FaultInjector $faults = null)
    {
        $this->ready = new \SplDoublyLinkedList();
        $this->arrival = new Wakeup("messages in queue \"{$name}\"");
    }

    /** @param array<string, string> $headers */
    public function push(string $type, string $body, array $headers): void
    {
        $this->ready->push(new Delivery(++self::$lastTag, $type, $body, $headers, redelivered: false));
        $this->arrival->notify();
    }

    /** Returns a delivery to the front. */
    public function giveBack(Delivery $delivery): void
    {
        $this->ready->unshift(new Delivery(++self::$lastTag, $delivery->type, $delivery->body, $delivery->headers, redelivered: true));
        $this->arrival->notify();
    }

    /** @return list<Delivery> */
    public function take(int $max): array
    {
        $taken = [];
        while ($max-- > 0 && ($ready = \count($this->ready)) > 0) {
            $index = $this->faults?->next($ready) ?? 0;
            if ($index === 0) {
                $taken[] = $this->ready->shift();
                continue;
            }
            $taken[] = $this->ready[$index];
            unset($this->ready[$index]);
        }

        return $taken;
    }

    public function depth(): int
    {
        return \count($this->ready);
    }
}
