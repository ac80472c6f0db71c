<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\Consuming\RemainingDeliveries;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\DatabaseTransport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Internal\Number;
use Weft\Pool\PoolException;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

use function Weft\current;
use function Weft\delay;
use function Weft\run;

/**
 * The dead letters of one queue.
 *
 * Reading takes messages from the broker and requeues the ones that stay, in their place: two readers at the same time see different
 * messages.
 */
final class DeadLetters
{
    /** Seconds without a message after which the queue counts as read. */
    private const EMPTY_AFTER = 0.2;

    /** Messages that are read at a time. */
    private const BATCH_SIZE = 500;

    /** Ids of refused messages that an error shows. */
    private const SHOWN_IDS = 5;

    /** Headers that a retried message does not keep. */
    private const FAILURE_HEADERS = [
        Header::ERROR_CLASS, Header::ERROR_MESSAGE, Header::ERROR_STACK, Header::FAILED_AT, Header::FAILED_QUEUE, Header::RETRIES, Header::LEFT_OUT,
        Header::EXPIRES_AT, Header::REPLY_TO,
    ];

    /** Of the name of a queue with dead letters, after that of the queue they come from. */
    private const SUFFIX = '.dead';

    private readonly string $dead;

    /** @internal see {@see Queue::deadLetters()} */
    public function __construct(
        private readonly Transport $transport,
        private readonly string $queue,
        private readonly ?Persistence $persistence = null,
    ) {
        $this->dead = self::queueOf($queue);
    }

    public static function queueOf(string $queue): string
    {
        return $queue . self::SUFFIX;
    }

    /**
     * The queue whose dead letters are in this one.
     *
     * @internal
     */
    public static function origin(string $deadLetters): ?string
    {
        return \str_ends_with($deadLetters, self::SUFFIX) ? \substr($deadLetters, 0, -\strlen(self::SUFFIX)) : null;
    }

    /** @throws UndefinedQueueException neither the queue nor its dead letters exist */
    public function count(): int
    {
        try {
            return $this->transport->depth($this->dead);
        } catch (UndefinedQueueException $undefined) {
            throw new UndefinedQueueException("Queue \"{$this->queue}\" has no queue of dead letters; is its name misspelt? {$undefined->getMessage()}", $undefined);
        }
    }

    /**
     * Returns the oldest dead letters and leaves them in the queue.
     *
     * @param positive-int $limit
     * @return list<DeadLetter>
     */
    public function peek(int $limit = 10, DeadLetterFilter $filter = new DeadLetterFilter()): array
    {
        $letters = [];
        $this->each($filter, $limit, static function (DeadLetter $letter) use (&$letters): void {
            $letters[] = $letter;
        });

        return $letters;
    }

    /**
     * Moves messages back to the queue in which they failed. Id, trace and body stay the same, retries are counted from zero, and only
     * the failed listeners of an event run. A transport in a database moves each message in one transaction. With another one a message may
     * be in both queues after a crash; the inbox recognises it by its id.
     *
     * @param float|null        $rate  messages per second; null for no limit
     * @param positive-int|null $limit messages in all, those that the broker refuses included
     * @return int number of moved messages
     *
     * @throws PublishException         when the broker refuses messages, once all others are moved; or when it cannot be reached. Messages that
     *                                  are not moved are still dead letters
     * @throws UndefinedQueueException
     */
    public function retry(DeadLetterFilter $filter = new DeadLetterFilter(), ?float $rate = null, ?int $limit = null): int
    {
        if ($rate !== null && !($rate > 0.0)) {
            throw new \ValueError('The rate of retries must be above 0 per second, got ' . Number::text($rate));
        }

        $refused = [];
        $tried = $this->each($filter, $limit, function (DeadLetter $letter, Consumer $consumer, Delivery $delivery) use ($rate, &$refused): void {
            try {
                $this->replace($consumer, $delivery, $this->queue, new Outgoing($letter->type, $letter->body, \array_diff_key($letter->headers, \array_flip(self::FAILURE_HEADERS))));
            } catch (PublishException $exception) {
                if (!$exception->refused && !$exception->nacked) {
                    throw $exception;
                }
                // Those behind it may be moved.
                $refused[] = [$letter, $exception];
            }
            $rate === null || delay(1.0 / $rate);
        });
        if ($refused !== []) {
            throw $this->refusal($refused, $tried);
        }

        return $tried;
    }

    /**
     * Replaces the body of a dead letter, which stays in the dead-letter queue. With a transport that is not in a database it may be there
     * with both bodies after a crash.
     *
     * @return bool false when there is no dead letter with this id
     */
    public function edit(string $id, string $body): bool
    {
        return $this->each(new DeadLetterFilter(id: $id), 1, function (DeadLetter $letter, Consumer $consumer, Delivery $delivery) use ($body): void {
            // The new body travels with the message, even if the old one was in a claim-check store.
            $this->replace($consumer, $delivery, $this->dead, new Outgoing($letter->type, $body, \array_diff_key($letter->headers, [Header::CLAIM => true])));
        }) === 1;
    }

    /**
     * Deletes dead letters. A key of ordered messages that a deleted letter has blocked is released, see {@see Queue::releaseKey()}.
     *
     * @param positive-int|null $limit messages in all
     * @return int number of deleted messages
     */
    public function delete(DeadLetterFilter $filter, ?int $limit = null): int
    {
        $this->persistence?->prepare();

        return $this->each($filter, $limit, function (DeadLetter $letter, Consumer $consumer, Delivery $delivery): void {
            // First: without its letter a key would stay blocked after a crash.
            $this->persistence?->releaseKeyOf($delivery, $this->queue);
            $consumer->ack($delivery);
        });
    }

    /** Puts a message into a queue and acknowledges the dead letter that it replaces, in one step where the transport can. */
    private function replace(Consumer $consumer, Delivery $delivery, string $queue, Outgoing $message): void
    {
        $transport = $this->transport;
        if (!$transport instanceof DatabaseTransport || !$consumer instanceof TransactionalConsumer) {
            $transport->put($queue, [$message]);
            $consumer->ack($delivery);

            return;
        }
        try {
            $transport->database()->transaction(static function (Transaction $transaction) use ($transport, $consumer, $delivery, $queue, $message): void {
                $transport->publishIn($transaction, $queue, [$message]);
                $consumer->enlist($transaction, $delivery, []);
            });
        } catch (PoolException | SqlException $exception) {
            throw new PublishException("Cannot move a dead letter of \"{$this->queue}\" to \"{$queue}\": {$exception->getMessage()}", $exception);
        }
        $consumer->settled($delivery);
    }

    /** @param non-empty-list<array{DeadLetter, PublishException}> $refused */
    private function refusal(array $refused, int $tried): PublishException
    {
        [$letter, $first] = $refused[0];
        $ids = \array_map(static fn(array $one): string => $one[0]->messageId(), \array_slice($refused, 0, self::SHOWN_IDS));
        $more = \count($refused) > \count($ids) ? ' and others' : '';

        return new PublishException(
            \count($refused) . " of {$tried} dead letters of \"{$this->queue}\" could not be moved and stay: " . \implode(', ', $ids) . "{$more}; the others were moved. Message {$letter->messageId()} of type {$letter->type}: {$first->getMessage()}",
            $first,
            refused: $first->refused,
            nacked: $first->nacked,
        );
    }

    /**
     * @param \Closure(DeadLetter, Consumer, Delivery): void $do settles the delivery, or leaves the letter where it is
     * @return int for how many it was called
     */
    private function each(DeadLetterFilter $filter, ?int $limit, \Closure $do): int
    {
        if ($limit !== null && $limit < 1) {
            throw new \ValueError("The limit of dead letters must be at least 1, got {$limit}");
        }
        if (current() === null) {
            return run(fn(): int => $this->each($filter, $limit, $do));
        }
        $total = $this->count();
        // Messages that stay keep their place in the prefetch, so reading all of them takes a prefetch of as many.
        $prefetch = \max(1, $filter->isEmpty() ? \min($limit ?? \PHP_INT_MAX, $total) : $total);
        $consumer = $this->transport->consume($this->dead, $prefetch);
        $found = $seen = 0;
        try {
            // Only messages that are there now: one that is edited or fails again goes to the end of the queue.
            while ($seen < $total && $found < ($limit ?? \PHP_INT_MAX)) {
                $deliveries = RemainingDeliveries::next($consumer, \max(1, \min($total - $seen, $prefetch, self::BATCH_SIZE)), self::EMPTY_AFTER);
                if ($deliveries === []) {
                    break;
                }
                foreach ($deliveries as $delivery) {
                    $seen++;
                    $letter = new DeadLetter($delivery->type, $delivery->body, $delivery->headers);
                    if ($found < ($limit ?? \PHP_INT_MAX) && $filter->matches($letter)) {
                        $do($letter, $consumer, $delivery);
                        $found++;
                    }
                }
            }
        } finally {
            $consumer->close();
        }

        return $found;
    }
}
