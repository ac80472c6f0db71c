<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Bus\Internal\Consuming\DatabaseOutage;
use Weft\Bus\Internal\Requests\AbandonedReplyQueues;
use Weft\Internal\Jitter;
use Weft\Pool\PoolException;
use Weft\Runtime\Task;
use Weft\Sql\SqlException;

use function Weft\delay;
use function Weft\detach;

/**
 * Checks once a second, while this process has consumers, whether their liveness session is alive and which consumers are dead.
 *
 * @internal
 */
final class LivenessMonitor
{
    /** Seconds between two checks, plus or minus a quarter. */
    private const CHECK_INTERVAL = 1.0;

    private ?Task $task = null;
    private int $users = 0;
    private readonly AbandonedReplyQueues $abandoned;

    public function __construct(
        private readonly Store $store,
        private readonly LivenessSession $presence,
        private readonly MessageNotifications $arrivals,
        private readonly ConnectionEvents $notices,
    ) {
        $this->abandoned = new AbandonedReplyQueues($store->queues->unconsumedReplyQueues(...), $store->queues->drop(...));
    }

    public function begin(): void
    {
        if ($this->users++ === 0) {
            $this->task = detach($this->run(...));
        }
    }

    public function end(): void
    {
        if (--$this->users === 0) {
            $this->task?->cancel('nothing is consumed any more');
            $this->task = null;
            $this->arrivals->end();
            // The session keeps a lock of each consumer that it had, and a server has room for a limited number of locks.
            $this->presence->leave();
        }
    }

    private function run(): never
    {
        while (true) {
            try {
                $had = $this->presence->session();
                $this->presence->check();
                if ($had !== 0 && $this->presence->session() === 0) {
                    $this->notices->warn('The liveness connection was lost: unacknowledged messages may be delivered to other consumers');
                }
                if ($this->store->releaseDead() > 0) {
                    $this->arrivals->announce();
                }
                $this->abandoned->tick();
            } catch (PoolException | SqlException $exception) {
                DatabaseOutage::isOne($exception) || $this->notices->warn('Dead consumers could not be detected: {error}', ['error' => $exception->getMessage()]);
            }
            // With jitter, so that the processes do not check at the same time.
            delay(Jitter::around(self::CHECK_INTERVAL, 0.25));
        }
    }
}
