<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Transport;
use Weft\Sql\Database;

use function Weft\delay;

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
    /** Seconds that {@see DeferredDelete} may take to delete rows of published messages. */
    private const DELETED_AFTER = 1.0;

    /** Seconds between two checks whether rows are deleted. */
    private const CHECK_INTERVAL = 0.05;

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

        return $horizon === null ? 0 : $this->upTo($horizon)[0];
    }

    /** Publishes all rows, including those that a worker is about to publish. */
    public function all(): int
    {
        $last = $this->database->execute('SELECT max(id) FROM weft_outbox')->value();

        return $last === null ? 0 : $this->upTo($last)[0];
    }

    /**
     * Publishes the rows of ordered messages, so that later ones of their keys may be sent. Live workers first get the time to delete the rows
     * that they have published. Returns when none of these rows is left, except those that cannot be published: also those are gone that another
     * relay was about to publish.
     *
     * @param string|null $cause id of the message whose handlers have sent them; null for all
     *
     * @throws \Weft\Bus\PublishException|\Weft\Pool\PoolException|\Weft\Sql\SqlException
     */
    public function settleOrder(?string $cause = null): void
    {
        // Only ordered messages have a cause, see OutboxRow.
        $condition = $cause === null ? 'cause IS NOT NULL' : 'cause = ?';
        $parameters = $cause === null ? [] : [$cause];
        $last = $this->database->execute("SELECT max(id) FROM weft_outbox WHERE {$condition}", $parameters)->value();
        if ($last === null) {
            return;
        }
        $count = fn(): int => (int) $this->database->execute("SELECT count(*) FROM weft_outbox WHERE id <= ? AND {$condition}", [$last, ...$parameters])->value();
        $until = Clock::monotonic() + self::DELETED_AFTER;
        while (($left = $count()) > 0 && Clock::monotonic() < $until) {
            delay(self::CHECK_INTERVAL);
        }
        while ($left > 0) {
            [, $stuck] = $this->upTo($last, " AND {$condition}", $parameters);
            $left = $count() - $stuck;
            $left > 0 && delay(self::CHECK_INTERVAL);
        }
    }

    /**
     * @param list<string> $parameters of the condition
     * @return array{int, int} how many messages were sent, and how many could not be published
     */
    private function upTo(string $horizon, string $condition = '', array $parameters = []): array
    {
        $sent = $failed = 0;
        $after = '';
        do {
            // Skips rows that could not be published, within this pass only.
            $batch = $this->publisher->carry("id > ? AND id <= ?{$condition}", [$after, $horizon, ...$parameters], 'id');
            $sent += $batch->sent;
            $failed += \count($batch->stuck);
            $after = $batch->last;
        } while ($batch->hasMore);

        return [$sent, $failed];
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
