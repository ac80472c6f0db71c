<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Bus\Transport;
use Weft\Sql\Database;

/**
 * Publishes outbox rows that were committed and not published, because their worker ended in between.
 *
 * It has no cursor and uses no wall clock: every pass starts with the smallest id, and a row is due when the largest id of a pass
 * `relayAfter` seconds ago was not less than its own. A row that commits late, or comes from a machine with a wrong clock, is found by one
 * of the next passes. A row that its worker is about to publish may be published twice, with one id.
 *
 * @internal
 */
final class OutboxRelay
{
    private readonly TablePublisher $publisher;

    /** @var list<array{float, string}> when, by the monotonic clock, which id was the largest; oldest first */
    private array $horizons = [];

    public function __construct(
        private readonly Database $database,
        Transport $transport,
        LoggerInterface $logger,
        private readonly float $after,
    ) {
        $this->publisher = new TablePublisher($database, $transport, $logger, 'weft_outbox');
    }

    /**
     * Makes one pass and publishes what is due.
     *
     * @return int how many messages were sent
     * @throws \Weft\Bus\PublishException|\Weft\Sql\SqlException
     */
    public function look(): int
    {
        $now = \hrtime(true) / 1e9;
        $last = $this->database->execute('SELECT max(id) FROM weft_outbox')->value();
        $horizon = $this->horizonAt($now - $this->after);
        if ($last === null) {
            $this->horizons = [];

            return 0;
        }
        $this->horizons[] = [$now, $last];

        return $horizon === null ? 0 : $this->upTo($horizon);
    }

    /** Publishes all rows, including those that a worker is about to publish. */
    public function all(): int
    {
        $last = $this->database->execute('SELECT max(id) FROM weft_outbox')->value();

        return $last === null ? 0 : $this->upTo($last);
    }

    private function upTo(string $horizon): int
    {
        $sent = 0;
        $after = '';
        do {
            // Skips rows that could not be published, within this pass only.
            $batch = $this->publisher->carry('id > ? AND id <= ?', [$after, $horizon], 'id');
            $sent += $batch->sent;
            $after = $batch->last;
        } while ($batch->hasMore);

        return $sent;
    }

    /** The largest id of the latest pass before a time; null without one. */
    private function horizonAt(float $time): ?string
    {
        $horizon = null;
        while ($this->horizons !== [] && $this->horizons[0][0] <= $time) {
            $horizon = \array_shift($this->horizons)[1];
        }
        if ($horizon !== null) {
            \array_unshift($this->horizons, [$time, $horizon]);
        }

        return $horizon;
    }
}
