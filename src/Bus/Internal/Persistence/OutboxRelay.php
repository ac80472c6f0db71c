<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Bus\Transport;
use Weft\Sql\Database;

/**
 * Sends what was committed and then not sent, because its worker went away in between.
 *
 * It has no cursor and trusts no clock: every look begins with the smallest id, and a row is due when the largest id of a
 * look `relayAfter` seconds ago was not below its own. A row that is committed late, or by a machine whose clock is wrong, is
 * seen by the next look or the one after; a row that its worker is about to send may be sent twice, under one id.
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
     * Looks once and sends what is due.
     *
     * @return int how many messages were sent
     * @throws \Weft\Bus\PublishFailed|\Weft\Sql\SqlException
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

    /** Sends everything that is there now, whoever may be about to do so. */
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
            // Only within one look, past rows that could not be sent; the next one begins at the beginning.
            [$rows, $stuck] = $this->publisher->carry('id > ? AND id <= ? ORDER BY id', [$after, $horizon]);
            $sent += \count($rows) - \count($stuck);
            $after = $rows[\count($rows) - 1]['id'] ?? '';
        } while (\count($rows) === TablePublisher::BATCH);

        return $sent;
    }

    /** The largest id of the latest look before a time; null when there was none. */
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
