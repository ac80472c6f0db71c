<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Bus\Internal\Consuming\DatabaseOutage;
use Weft\Bus\Internal\Wakeup;
use Weft\Pool\PoolException;
use Weft\Runtime\Task;
use Weft\Sql\SqlException;

use function Weft\current;
use function Weft\delay;
use function Weft\detach;
use function Weft\shield;

/**
 * Sends acknowledgements and requeues in batches: what arrives while a statement is running goes into the next one. They wait while
 * the server is unavailable or their rows are locked; if it considers the consumers dead meanwhile, they are void.
 *
 * @internal
 */
final class AckBatcher
{
    private const FIRST_PAUSE = 0.05;
    private const LONGEST_PAUSE = 2.0;

    /** @var array<int, list<int>> message ids by consumer */
    private array $acks = [];

    /** @var array<int, list<int>> */
    private array $returns = [];

    /** Sends the batches. A task that was cancelled before it began has done nothing. */
    private ?Task $worker = null;
    /** Tasks that wait in {@see close()}. */
    private int $closing = 0;

    /** A failure that waiting does not resolve, until a batch succeeds. It ends the consumers that are open. */
    public PoolException|SqlException|null $failure = null;

    private readonly Wakeup $idle;

    /** @param \Closure(): void $given called when messages are there for others */
    public function __construct(
        private readonly Store $store,
        private readonly Vacuum $vacuum,
        private readonly \Closure $given,
    ) {
        $this->idle = new Wakeup('acknowledgements on their way to PostgreSQL');
    }

    public function ack(int $consumer, int $id): void
    {
        $this->acks[$consumer][] = $id;
        $this->begin();
    }

    public function giveBack(int $consumer, int $id): void
    {
        $this->returns[$consumer][] = $id;
        $this->begin();
    }

    /** @return list<int> what a consumer has settled, and the server does not know yet */
    public function of(int $consumer): array
    {
        return [...$this->acks[$consumer] ?? [], ...$this->returns[$consumer] ?? []];
    }

    /** Waits until everything is settled, but not for an unavailable server or a lock. */
    public function close(): void
    {
        $this->closing++;
        try {
            if ($this->acks !== [] || $this->returns !== []) {
                $this->begin();
            }
            while ($this->isWorking()) {
                $this->idle->wait();
            }
        } finally {
            $this->closing--;
        }
    }

    private function begin(): void
    {
        if (current() === null) {
            // Without an event loop nothing runs beside the caller.
            $this->work();
        } elseif (!$this->isWorking()) {
            // Detached, so that no handler waits for it.
            $this->worker = detach(fn() => shield($this->work(...)));
        }
    }

    private function isWorking(): bool
    {
        return $this->worker !== null && !$this->worker->isDone();
    }

    private function work(): void
    {
        $pause = self::FIRST_PAUSE;
        try {
            while ($this->acks !== [] || $this->returns !== []) {
                try {
                    $this->next();
                    $this->failure = null;
                    $pause = self::FIRST_PAUSE;
                } catch (PoolException | SqlException $exception) {
                    if (!DatabaseOutage::passes($exception)) {
                        $this->failure = $exception;

                        return;
                    }
                    if ($this->closing > 0) {
                        return;
                    }
                    delay($pause);
                    $pause = \min(self::LONGEST_PAUSE, 2 * $pause);
                }
            }
        } finally {
            $this->idle->notify();
        }
    }

    private function next(): void
    {
        $isAck = $this->acks !== [];
        /** @var int $consumer one has settlements: it is called where some wait */
        $consumer = \array_key_first($isAck ? $this->acks : $this->returns);
        $ids = $isAck ? $this->acks[$consumer] : $this->returns[$consumer];
        $isAck ? $this->store->delete($consumer, $ids) : $this->store->giveBack($consumer, $ids);
        // Others may have been added meanwhile.
        if ($isAck) {
            $this->acks[$consumer] = \array_slice($this->acks[$consumer], \count($ids));
            $this->acks = \array_filter($this->acks);
            $this->vacuum->died(\count($ids));
        } else {
            $this->returns[$consumer] = \array_slice($this->returns[$consumer], \count($ids));
            $this->returns = \array_filter($this->returns);
            ($this->given)();
        }
    }
}
