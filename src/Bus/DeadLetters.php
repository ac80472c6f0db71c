<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\Consuming\RemainingDeliveries;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;

use function Weft\current;
use function Weft\delay;
use function Weft\run;

/**
 * The messages of one queue that could not be handled.
 *
 * Whoever looks takes them from the broker meanwhile and gives back what stays, in its place: two who look at a time see
 * different ones.
 */
final class DeadLetters
{
    /** Seconds without a message after which all have been seen. */
    private const LINGER = 0.2;

    /** Letters that are read at a time. */
    private const CHUNK = 500;

    /** What a message that is tried again does not take along. */
    private const OF_THE_FAILURE = [
        Header::ERROR_CLASS, Header::ERROR_MESSAGE, Header::ERROR_STACK, Header::FAILED_AT, Header::FAILED_QUEUE, Header::RETRIES, Header::LEFT_OUT,
        Header::EXPIRES_AT, Header::REPLY_TO,
    ];

    private readonly string $dead;

    /** @internal see {@see Bus::deadLetters()} */
    public function __construct(
        private readonly Transport $transport,
        private readonly string $queue,
    ) {
        $this->dead = self::queueOf($queue);
    }

    public static function queueOf(string $queue): string
    {
        return "{$queue}.dead";
    }

    public function count(): int
    {
        return $this->transport->depth($this->dead);
    }

    /**
     * Looks at the oldest dead letters and leaves them where they are.
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
     * Gives letters back to the queue they came from: id, trace and body are the old ones, retries are counted anew, and of an
     * event only the listeners that had failed run. A crash in the middle leaves one in both places; retried once more,
     * it is recognised by its id where the bus records what it handles.
     *
     * @param float|null        $rate  most per second; null for no limit
     * @param positive-int|null $limit most in all
     * @return int how many
     *
     * @throws PublishFailed|UndefinedQueue the letter is still there
     */
    public function retry(DeadLetterFilter $filter = new DeadLetterFilter(), ?float $rate = null, ?int $limit = null): int
    {
        if ($rate !== null && !($rate > 0.0)) {
            throw new \ValueError("The rate of retries must be above 0 per second, got {$rate}");
        }

        return $this->each($filter, $limit, function (DeadLetter $letter, Consumer $consumer, Delivery $delivery) use ($rate): void {
            $this->transport->put($this->queue, [new Outgoing($letter->type, $letter->body, \array_diff_key($letter->headers, \array_flip(self::OF_THE_FAILURE)))]);
            $consumer->ack($delivery);
            $rate === null || delay(1.0 / $rate);
        });
    }

    /**
     * Replaces the body of a letter, which stays a dead letter. A crash in the middle leaves the letter with either body, or both.
     *
     * @return bool false when there is none of that id
     */
    public function edit(string $id, string $body): bool
    {
        return $this->each(new DeadLetterFilter(id: $id), 1, function (DeadLetter $letter, Consumer $consumer, Delivery $delivery) use ($body): void {
            // The new body is here, whatever was kept elsewhere.
            $this->transport->put($this->dead, [new Outgoing($letter->type, $body, \array_diff_key($letter->headers, [Header::CLAIM => true]))]);
            $consumer->ack($delivery);
        }) === 1;
    }

    /**
     * Deletes letters for good.
     *
     * @param positive-int|null $limit most in all
     * @return int how many
     */
    public function delete(DeadLetterFilter $filter, ?int $limit = null): int
    {
        return $this->each($filter, $limit, static fn(DeadLetter $letter, Consumer $consumer, Delivery $delivery) => $consumer->ack($delivery));
    }

    /**
     * @param \Closure(DeadLetter, Consumer, Delivery): void $do settles the delivery, or leaves the letter where it is
     * @return int for how many it was called
     */
    private function each(DeadLetterFilter $filter, ?int $limit, \Closure $do): int
    {
        if (current() === null) {
            return run(fn(): int => $this->each($filter, $limit, $do));
        }
        $total = $this->count();
        // Those that are looked at and left keep their place among the prefetched ones, so to look at all of them takes as many.
        $prefetch = \max(1, $filter->isEmpty() ? \min($limit ?? \PHP_INT_MAX, $total) : $total);
        $consumer = $this->transport->consume($this->dead, $prefetch);
        $found = $seen = 0;
        try {
            // Those that are there now and no more: a letter that is edited or fails again comes to the end.
            while ($seen < $total && $found < ($limit ?? \PHP_INT_MAX)) {
                $deliveries = RemainingDeliveries::next($consumer, \max(1, \min($total - $seen, $prefetch, self::CHUNK)), self::LINGER);
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
