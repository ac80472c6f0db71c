<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\ExceptionChain;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Wakeup;
use Weft\Pool\PoolException;
use Weft\Sql\ConnectionException;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\Database;
use Weft\Sql\LockNotAvailableException;
use Weft\Sql\SqlException;
use Weft\Sql\StatementCancelledException;
use Weft\Sql\TransactionAbortedException;

use function Weft\delay;

/**
 * Pauses handlers while the database is unavailable or read-only, instead of failing their messages. One of them checks the database
 * with increasing pauses; then all continue. Paused handlers keep the worker from fetching more messages.
 *
 * @internal
 */
final class DatabaseOutage
{
    private const FIRST_PAUSE = 0.05;
    private const LONGEST_PAUSE = 5.0;

    /** Seconds in which handlers report a failure of a database that is available again. */
    private const RECENT = 5.0;

    /** How often one message may wait: a handler may lose connections while the database is available. */
    private const MAX_WAITS = 20;

    /** SQLSTATE class of a server without memory, disk space or free connections. */
    private const INSUFFICIENT_RESOURCES = '53';

    /** SQLSTATE of a read-only server, such as a replica before its promotion. */
    private const READ_ONLY = '25006';

    /** Deletes nothing, but fails on a read-only server. */
    private const PROBE = "DELETE FROM weft_redeliveries WHERE message_id = ''";

    private bool $probing = false;
    private readonly Wakeup $over;
    /** How many attempts to connect to the database have failed, and when that was last found to have grown. */
    private int $failures;
    private float $failedAt = -\INF;

    public function __construct(
        private readonly Database $database,
        private readonly LoggerInterface $logger,
    ) {
        $this->over = new Wakeup('the database to come back');
        $this->failures = $this->failures();
    }

    /**
     * Waits until the database answers, when it is what has failed.
     *
     * @param int<1, max> $times how often the message waits, this time included
     * @return bool false when it was something else, or when it makes no sense to wait again
     * @throws HandlingInterruptedException when the worker stops meanwhile
     */
    public function wait(\Throwable $thrown, int $times, Worker $worker): bool
    {
        if ($times > self::MAX_WAITS || !self::isOne($thrown)) {
            return false;
        }
        if ($this->probing) {
            while ($this->probing && !$worker->isStopping()) {
                $this->over->wait(Clock::monotonic() + self::LONGEST_PAUSE);
            }
            if (self::isUnreachable($thrown) && !$this->hasFailedToConnect()) {
                return false;
            }
        } elseif (!$this->probe($thrown, $times, $worker)) {
            return false;
        }
        if ($worker->isStopping() && !$this->isAvailable()) {
            throw new HandlingInterruptedException('the worker was stopped while the database was unavailable');
        }

        return true;
    }

    /**
     * @param int<1, max> $times
     * @return bool false when another database has failed
     */
    private function probe(\Throwable $thrown, int $times, Worker $worker): bool
    {
        $pause = \min(self::LONGEST_PAUSE, self::FIRST_PAUSE * 2 ** ($times - 1));
        $this->probing = true;
        try {
            // This one has just come back, or another one cannot be reached.
            if (self::isUnreachable($thrown) && $this->isAvailable()) {
                return $times === 1 && $this->hasFailedToConnect();
            }
            $this->logger->warning('Database unavailable; handlers are paused: {error}', ['error' => $thrown->getMessage(), 'exception' => $thrown]);
            do {
                delay($pause);
                $pause = \min(self::LONGEST_PAUSE, 2 * $pause);
            } while (!$worker->isStopping() && !$this->isAvailable());

            return true;
        } finally {
            $this->probing = false;
            $this->over->notify();
        }
    }

    /** Whether the database could not be connected to a moment ago. An exception does not say of which database it is. */
    private function hasFailedToConnect(): bool
    {
        $failures = $this->failures();
        if ($failures !== $this->failures) {
            [$this->failures, $this->failedAt] = [$failures, Clock::monotonic()];
        }

        return Clock::monotonic() - $this->failedAt < self::RECENT;
    }

    /** 0 for SQLite, which has no pool and is connected to once. */
    private function failures(): int
    {
        return (int) ($this->database->stats()['connect_failures'] ?? 0);
    }

    private function isAvailable(): bool
    {
        try {
            $this->database->execute(self::PROBE);

            return true;
        } catch (PoolException) {
            return false;
        } catch (SqlException $exception) {
            // Another error shows that the server is available.
            return $exception->sqlState !== null && !self::isOne($exception);
        }
    }

    /** Whether the same statement may succeed later: an outage, or another transaction that is in its way now. */
    public static function passes(SqlException|PoolException $exception): bool
    {
        return $exception instanceof LockNotAvailableException || $exception instanceof StatementCancelledException
            || $exception instanceof TransactionAbortedException || self::isOne($exception);
    }

    /** Whether a server could not be connected to, for another reason than a lack of connections, which passes from one moment to the next. */
    private static function isUnreachable(\Throwable $thrown): bool
    {
        foreach (ExceptionChain::of($thrown) as $error) {
            if ($error instanceof ConnectionException && !\str_starts_with($error->sqlState ?? '', self::INSUFFICIENT_RESOURCES)) {
                return true;
            }
        }

        return false;
    }

    /** Whether the failure ends when the server is available again. */
    public static function isOne(\Throwable $thrown): bool
    {
        foreach (ExceptionChain::of($thrown) as $error) {
            if ($error instanceof ConnectionException || $error instanceof ConnectionLostException) {
                return true;
            }
            $state = $error instanceof SqlException ? $error->sqlState ?? '' : '';
            if ($state === self::READ_ONLY || \str_starts_with($state, self::INSUFFICIENT_RESOURCES)) {
                return true;
            }
        }

        return false;
    }
}
