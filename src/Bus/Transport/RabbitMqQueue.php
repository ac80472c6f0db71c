<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Internal\Number;

/**
 * The kind of queue that {@see RabbitMq} declares. The type is always sent explicitly, so that defaults of the broker or virtual host do
 * not apply.
 */
final class RabbitMqQueue
{
    private const EXISTING = 'existing';

    /** Disables the broker's delivery limit: the bus counts attempts itself. */
    private const NO_DELIVERY_LIMIT = 2_000_000_000;

    /**
     * @param array<string, mixed> $arguments
     * @param array<string, mixed> $dead      of the dead-letter queue
     * @param string|int|\DateTimeInterface|null $offset where consumers of a stream begin
     */
    private function __construct(
        public readonly string $type,
        public readonly array $arguments,
        public readonly array $dead,
        private readonly string|int|\DateTimeInterface|null $offset = null,
    ) {}

    /**
     * A classic queue: on one node, and the fastest.
     *
     * @param int<0, 9> $priorities highest {@see \Weft\Bus\Header::PRIORITY} that is distinguished; 0 for none. Each level costs the broker
     *                              a queue of its own
     * @param bool $singleActiveConsumer whether only one consumer at a time receives messages, with automatic failover; with a concurrency
     *                                   of 1 messages are handled one after the other
     * @param array<string, mixed> $arguments further arguments of RabbitMQ, such as `x-overflow`
     */
    public static function classic(int $priorities = 0, bool $singleActiveConsumer = false, array $arguments = []): self
    {
        if ($priorities < 0 || $priorities > 9) {
            throw new \ValueError("The highest priority of a queue must be 0 to 9, got {$priorities}");
        }
        $own = ($priorities === 0 ? [] : ['x-max-priority' => $priorities]) + self::single($singleActiveConsumer);

        return new self('classic', $own + self::other($arguments) + ['x-queue-type' => 'classic'], ['x-queue-type' => 'classic']);
    }

    /**
     * A quorum queue: replicated, no confirmed message is lost while most nodes are alive.
     *
     * It has no delivery limit because the bus counts attempts itself: RabbitMQ 4 would drop a message that was requeued twenty times.
     *
     * @param bool $singleActiveConsumer as in {@see classic()}
     * @param int<1, max>|null $replicas number of nodes that store it; null leaves that to the broker
     * @param array<string, mixed> $arguments
     */
    public static function quorum(bool $singleActiveConsumer = false, ?int $replicas = null, array $arguments = []): self
    {
        if ($replicas !== null && $replicas < 1) {
            throw new \ValueError("A quorum queue must have at least 1 replica, got {$replicas}");
        }
        $common = ['x-queue-type' => 'quorum', 'x-delivery-limit' => self::NO_DELIVERY_LIMIT]
            + ($replicas === null ? [] : ['x-quorum-initial-group-size' => $replicas]);

        return new self('quorum', self::single($singleActiveConsumer) + self::other($arguments) + $common, $common);
    }

    /**
     * A stream: an append-only log. Every consumer reads all messages from its offset, and acknowledging removes nothing. For listeners
     * that replay events; a command in a stream would be handled by every consumer.
     *
     * Offsets of consumers are not stored. A consumer that starts at the same offset again receives the messages again, and with a database
     * recognises those it has handled. The header `x-stream-offset` of a message is its offset.
     *
     * @param 'first'|'last'|'next'|int|\DateTimeInterface $offset where consumers start: at the oldest message, the last chunk, new messages
     *        only, an offset, or a time
     * @param int<1, max>|null $maxBytes older segments are deleted beyond this size
     * @param float|null $maxAge seconds
     * @param array<string, mixed> $arguments
     */
    public static function stream(string|int|\DateTimeInterface $offset = 'next', ?int $maxBytes = null, ?float $maxAge = null, array $arguments = []): self
    {
        if (\is_string($offset) && !\in_array($offset, ['first', 'last', 'next'], true)) {
            throw new \ValueError("The offset of a stream must be first, last, next, a number or a time, got \"{$offset}\"");
        }
        if (($maxBytes ?? 1) < 1 || ($maxAge !== null && !($maxAge >= 1.0 && $maxAge < 1e10))) {
            throw new \ValueError('A stream must keep at least 1 byte and 1 second, got ' . ($maxBytes ?? 'no') . ' bytes and ' . ($maxAge === null ? 'no' : Number::text($maxAge)) . ' seconds');
        }
        $own = ($maxBytes === null ? [] : ['x-max-length-bytes' => $maxBytes]) + ($maxAge === null ? [] : ['x-max-age' => (int) \ceil($maxAge) . 's']);

        return new self(
            'stream',
            $own + self::other($arguments) + ['x-queue-type' => 'stream'],
            ['x-queue-type' => 'classic'],
            $offset,
        );
    }

    /**
     * A queue that another program has declared. The bus consumes it, and neither declares nor binds it; if it does not exist, consuming throws
     * {@see \Weft\Bus\UndefinedQueueException}, which names it.
     *
     * Beside it the bus declares two queues of its own: `<queue>.dead` for dead letters, and `weft.retry.<queue>`, through which delayed
     * retries return. With {@see RabbitMq::connect()}'s `declare: false` it declares none: then `<queue>.dead` must exist, too, and delayed
     * retries need a database.
     */
    public static function existing(): self
    {
        return new self(self::EXISTING, [], ['x-queue-type' => 'classic']);
    }

    /** Whether another program declares it. */
    public function isExisting(): bool
    {
        return $this->type === self::EXISTING;
    }

    public function isStream(): bool
    {
        return $this->type === 'stream';
    }

    /** @return array<string, mixed> arguments for a consumer that starts now */
    public function consuming(): array
    {
        if ($this->offset instanceof \DateTimeInterface) {
            $seconds = \time() - $this->offset->getTimestamp();

            return ['x-stream-offset' => $seconds <= 0 ? 'next' : "{$seconds}s"];
        }

        return $this->offset === null ? [] : ['x-stream-offset' => $this->offset];
    }

    /** @return array<string, bool> */
    private static function single(bool $singleActiveConsumer): array
    {
        return $singleActiveConsumer ? ['x-single-active-consumer' => true] : [];
    }

    /**
     * @param array<string, mixed> $arguments
     * @return array<string, mixed>
     */
    private static function other(array $arguments): array
    {
        if (isset($arguments['x-queue-type'])) {
            throw new \ValueError('The type of a queue is set by RabbitMqQueue::classic(), quorum() and stream(), not by an argument');
        }

        return $arguments;
    }
}
