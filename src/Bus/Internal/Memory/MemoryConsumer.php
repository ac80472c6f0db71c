<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Memory;

use Weft\Bus\Internal\Clock;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Memory;

/** @internal */
final class MemoryConsumer implements Consumer
{
    /** Seconds of real time that a wait takes at most while the virtual clock stands still. */
    private const VIRTUAL_CLOCK_WAIT = 0.001;

    /** @var array<int, Delivery> by tag */
    private array $unsettled = [];

    private bool $stopped = false;

    public function __construct(
        private readonly Memory $broker,
        private readonly MemoryQueue $queue,
        private readonly ?MemoryQueue $dead,
        private readonly int $prefetch,
        private readonly ?FaultInjector $faults = null,
    ) {}

    public function consumes(MemoryQueue $queue): bool
    {
        return $this->queue === $queue;
    }

    public function next(int $max, ?float $wait = null): array
    {
        $deadline = $wait === null ? null : Clock::monotonic() + (Clock::isVirtual() ? \min($wait, self::VIRTUAL_CLOCK_WAIT) : $wait);
        while (!$this->stopped) {
            $this->broker->delays()->release();
            $taken = $this->queue->take(\min($max, $this->prefetch - \count($this->unsettled)));
            if ($taken !== []) {
                foreach ($taken as $delivery) {
                    $this->unsettled[$delivery->tag] = $delivery;
                }

                return $taken;
            }
            $due = Clock::isVirtual() ? null : $this->broker->delays()->next();
            $until = \min($deadline ?? \INF, $due === null ? \INF : Clock::monotonic() + $due - Clock::now());
            if (!$this->queue->arrival->wait($until === \INF ? null : $until) && $deadline !== null && Clock::monotonic() >= $deadline) {
                break;
            }
        }

        return [];
    }

    public function ack(Delivery $delivery, array $publish = []): void
    {
        if ($publish !== []) {
            $this->broker->publish($publish);
        }
        if ($this->faults?->crashes()) {
            $this->giveBack();
        }
        $this->settle($delivery);
    }

    public function requeue(Delivery $delivery): void
    {
        if ($this->settle($delivery)) {
            $this->queue->giveBack($delivery);
        }
    }

    public function deadLetter(Delivery $delivery, array $headers): void
    {
        $dead = $this->dead ?? throw new PublishException('A message in a dead-letter queue cannot be dead-lettered');
        if ($this->settle($delivery)) {
            $dead->push($delivery->type, $delivery->body, $headers);
        }
    }

    public function stop(): void
    {
        $this->stopped = true;
        $this->queue->arrival->notify();
    }

    public function close(): void
    {
        $this->stop();
        $this->giveBack();
        $this->broker->forget($this);
    }

    private function giveBack(): void
    {
        // In reverse, because each goes to the front.
        foreach (\array_reverse($this->unsettled) as $delivery) {
            $this->requeue($delivery);
        }
    }

    private function settle(Delivery $delivery): bool
    {
        $isMine = isset($this->unsettled[$delivery->tag]);
        unset($this->unsettled[$delivery->tag]);
        // A waiting next() may be limited by the prefetch.
        if ($isMine && \count($this->unsettled) === $this->prefetch - 1) {
            $this->queue->arrival->notify();
        }

        return $isMine;
    }
}
