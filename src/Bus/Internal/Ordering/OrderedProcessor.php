<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ordering;

use Psr\Log\LoggerInterface;
use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Consuming\DatabaseOutage;
use Weft\Bus\Internal\Consuming\DeliveryProcessor;
use Weft\Bus\Internal\Persistence\BlockedKeys;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Internal\Consuming\Outcome;
use Weft\Bus\Internal\Consuming\Worker;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Pool\PoolException;
use Weft\Sql\InsufficientPrivilegeException;
use Weft\Sql\SqlException;
use Weft\Sql\UndefinedColumnException;
use Weft\Sql\UndefinedTableException;

use function Weft\delay;

/**
 * Keeps the order of the messages of a key when one of them fails: later messages wait in the database until it has succeeded or the key is
 * released.
 *
 * A key is blocked in the database before the failed message is settled, so that a crash in between lets no message pass.
 *
 * @internal
 */
final class OrderedProcessor
{
    /** Seconds between two checks for keys that were released elsewhere. */
    private const CHECK_INTERVAL = 0.5;

    /** Seconds until a failed operation is repeated. */
    private const RETRY_DELAY = 1.0;

    public readonly KeyQueues $keyQueues;

    /** @var array<string, string> the message that blocks each key */
    private array $blockedBy = [];

    private bool $known = false;

    /**
     * @param DeliveryProcessor $handling of messages from the broker
     * @param DeliveryProcessor $waiting  of those from the database
     */
    public function __construct(
        private readonly string $queue,
        private readonly BlockedKeys $keys,
        private readonly Consumer $consumer,
        private readonly DeliveryProcessor $handling,
        private readonly DeliveryProcessor $waiting,
        private readonly LoggerInterface $logger,
    ) {
        $this->keyQueues = new KeyQueues();
    }

    /** Handles a message in its turn, and then all messages behind it. */
    public function run(Delivery $delivery, string $key, Worker $worker): void
    {
        $this->learn($worker);
        $id = Persistence::idOf($delivery->headers);
        if (isset($this->blockedBy[$key]) && $this->blockedBy[$key] !== $id && $this->wait($delivery, $key, $worker)) {
            return;
        }
        $outcome = $this->turn($this->handling, $delivery, $key, $worker);
        if ($outcome === Outcome::Succeeded && isset($this->blockedBy[$key])) {
            // Each message behind it takes a place of its own.
            $worker->release($delivery);
            $this->insist($worker, fn() => $this->keys->release($this->queue, $key));
            $this->replay($key, $worker);
        }
    }

    /** @return bool false when the key is not blocked any more */
    private function wait(Delivery $delivery, string $key, Worker $worker): bool
    {
        $isBlocked = true;
        try {
            $this->insist($worker, function () use ($key, $delivery, &$isBlocked): void {
                $isBlocked = $this->keys->add($this->queue, $key, $delivery);
                $isBlocked && $this->consumer->ack($delivery);
            }, self::mayStoreLater(...));
        } catch (DuplicateMessageIdException | SqlException $refused) {
            $this->handling->refuse($delivery, $refused);
        }
        if (!$isBlocked) {
            unset($this->blockedBy[$key]);
        }

        return $isBlocked;
    }

    /** False for a row that the database never stores, such as one with a type that is longer than the column. */
    private static function mayStoreLater(SqlException $exception): bool
    {
        // The others end with an upgrade of the tables, or when an operator grants what the user lacks.
        return DatabaseOutage::passes($exception) || $exception instanceof UndefinedTableException || $exception instanceof UndefinedColumnException
            || $exception instanceof InsufficientPrivilegeException;
    }

    /** Handles the messages of a key that was released elsewhere; the key is reserved. */
    public function resume(string $key, Worker $worker): void
    {
        $this->learn($worker);
        $isReleased = false;
        // A message that was handled in between may have blocked it again.
        $this->insist($worker, function () use ($key, &$isReleased): void {
            $isReleased = $this->keys->isReleased($this->queue, $key);
        });
        $isReleased && $this->replay($key, $worker);
    }

    /** Handles the messages of a key that wait in the database; the key is reserved. */
    private function replay(string $key, Worker $worker): void
    {
        while (!$worker->isStopping()) {
            $waiting = [];
            $this->insist($worker, function () use ($key, &$waiting): void {
                $waiting = $this->keys->waiting($this->queue, $key);
                if ($waiting === []) {
                    $this->keys->forget($this->queue, $key);
                    unset($this->blockedBy[$key]);
                }
            });
            if ($waiting === []) {
                return;
            }
            foreach ($waiting as $delivery) {
                if ($worker->isStopping()) {
                    return;
                }
                try {
                    $outcome = $this->turn($this->waiting, $delivery, $key, $worker);
                } finally {
                    $worker->leave($delivery);
                }
                if ($outcome !== Outcome::Succeeded) {
                    return;
                }
            }
        }
    }

    /** Checks for keys that were released elsewhere, until it is cancelled. */
    public function attend(Worker $worker): never
    {
        while (true) {
            foreach ($this->released() as $key) {
                $worker->replay($key);
            }
            delay(self::CHECK_INTERVAL);
        }
    }

    /** Whether messages of a released key wait in the database. False while that cannot be read: then a later worker handles them. */
    public function hasReleasedKeys(): bool
    {
        return $this->released() !== [];
    }

    /** @return list<string> */
    private function released(): array
    {
        try {
            return $this->keys->released($this->queue);
        } catch (PoolException | SqlException $exception) {
            $this->logger->warning('The released keys of queue {queue} could not be read: {error}', ['queue' => $this->queue, 'error' => $exception->getMessage(), 'exception' => $exception]);

            return [];
        }
    }

    /** A requeued message is tried again here: at the broker others could overtake it. */
    private function turn(DeliveryProcessor $handling, Delivery $delivery, string $key, Worker $worker): Outcome
    {
        $failing = function () use ($key, $delivery): void {
            $id = Persistence::idOf($delivery->headers);
            $this->keys->block($this->queue, $key, $id);
            $this->blockedBy[$key] = $id;
        };
        while ($worker->acquire($delivery)) {
            $outcome = $handling->run($delivery, $worker, $failing);
            if ($outcome === Outcome::DeadLettered) {
                $this->logger->warning('Key {key} of queue {queue} is blocked by dead letter {id}: later messages of the key wait. Retry it (weft dead:retry), or continue without it (weft keys:release)', [
                    'key' => $key,
                    'queue' => $this->queue,
                    'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
                ]);
            }
            if ($outcome !== Outcome::Requeued || $worker->isStopping()) {
                return $outcome;
            }
            delay(self::RETRY_DELAY);
        }

        return Outcome::Requeued;
    }

    private function learn(Worker $worker): void
    {
        if (!$this->known) {
            $this->insist($worker, function (): void {
                $blockedBy = $this->keys->blockers($this->queue);
                // Another task may have loaded it and changed it since.
                $this->blockedBy = $this->known ? $this->blockedBy : $blockedBy;
                $this->known = true;
            });
        }
    }

    /**
     * Repeats the operation until it succeeds: continuing without it would break the order. If the worker stops, the message is requeued.
     *
     * @param \Closure(): mixed                    $do
     * @param (\Closure(SqlException): bool)|null $mayPass whether it may succeed later; null for always
     *
     * @throws SqlException when it may not
     */
    private function insist(Worker $worker, \Closure $do, ?\Closure $mayPass = null): void
    {
        while (true) {
            try {
                $do();

                return;
            } catch (PoolException | SqlException $exception) {
                if ($exception instanceof SqlException && $mayPass !== null && !$mayPass($exception)) {
                    throw $exception;
                }
                if ($worker->isStopping()) {
                    throw new OrderUnknownException($exception->getMessage(), previous: $exception);
                }
                $this->logger->error('Ordered messages of queue {queue} wait for the database: {error}', ['queue' => $this->queue, 'error' => $exception->getMessage(), 'exception' => $exception]);
                delay(self::RETRY_DELAY);
            }
        }
    }
}
