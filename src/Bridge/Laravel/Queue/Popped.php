<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Weft\Bus\Bus;
use Weft\Bus\Header;
use Weft\Bus\Internal\Consuming\HandlingFailedException;
use Weft\Bus\Internal\Consuming\RemoteConsumer;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;

/**
 * A job that `pop()` has returned, unacknowledged at its consumer.
 *
 * @internal
 */
final class Popped implements Source
{
    private bool $isSettled = false;

    public function __construct(private readonly Bus $bus, private readonly Consumer $consumer, private readonly Delivery $delivery)
    {
    }

    public function id(): string
    {
        return $this->delivery->headers[Header::MESSAGE_ID] ?? '';
    }

    public function acknowledge(): void
    {
        $this->consumer->ack($this->delivery);
        // It is sent now: there is no event loop while Laravel's worker handles a job.
        $this->consumer instanceof RemoteConsumer && $this->consumer->catchUp();
        $this->isSettled = true;
    }

    public function replace(QueuedJob $message, ?SendOptions $options): void
    {
        // A crash in between repeats the job, the other way round it would be lost.
        $this->bus->send($message, $options);
        $this->acknowledge();
    }

    /** Whether the broker has been told what became of the job. */
    public function isSettled(): bool
    {
        return $this->isSettled;
    }

    /**
     * @param class-string<QueuedJob> $class
     *
     * @throws MessageDecodingException
     */
    public function message(string $class): QueuedJob
    {
        try {
            $fields = \json_decode($this->delivery->body, true, flags: \JSON_THROW_ON_ERROR);
        } catch (\JsonException $error) {
            throw MessageDecodingException::malformed($class, $error->getMessage());
        }
        $payload = \is_array($fields) ? $fields['payload'] ?? null : null;
        $attempts = \is_array($fields) ? $fields['attempts'] ?? 0 : 0;
        if (!\is_string($payload)) {
            throw MessageDecodingException::mismatch($class, '$.payload', 'string', \get_debug_type($payload));
        }
        if (!\is_int($attempts) || $attempts < 0) {
            throw MessageDecodingException::mismatch($class, '$.attempts', 'int from 0', \get_debug_type($attempts));
        }

        return new $class($payload, $attempts);
    }

    /** Moves the message to the dead letters, with the headers that the bus gives to those it cannot decode. */
    public function deadLetter(MessageDecodingException $why, string $queue): void
    {
        try {
            $this->consumer->deadLetter($this->delivery, (new HandlingFailedException($why))->headers($this->delivery, $queue));
            $this->isSettled = true;
        } finally {
            $this->consumer->close();
        }
    }
}
