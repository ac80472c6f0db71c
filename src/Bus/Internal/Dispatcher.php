<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\ListenersFailed;
use Weft\Bus\MessageDecodingFailed;
use Weft\Bus\NoHandler;
use Weft\Bus\Progress;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Bus\UnknownMessageType;

/**
 * Gives a delivery to its handlers, publishes what they send and acknowledges it.
 *
 * @internal
 */
final class Dispatcher
{
    /** @param TransactionalConsumer|null $shared the consumer again, when its broker lives in the handlers' database */
    public function __construct(
        private readonly Consumer $consumer,
        private readonly ?TransactionalConsumer $shared,
        private readonly Transport $transport,
        private readonly Handlers $handlers,
        private readonly Codec $codec,
        private readonly Invoker $invoker,
        private readonly Progress $progress,
    ) {}

    /**
     * @throws \Throwable when the delivery was not acknowledged; a {@see Failure} knows the handlers at fault
     */
    public function dispatch(Delivery $delivery, Worker $worker): void
    {
        $handlers = $this->handlers->of($delivery->type);
        match (\count($handlers)) {
            0 => $this->unhandled($delivery),
            1 => $this->single($handlers[0], $delivery, $worker),
            default => $this->several($handlers, $delivery, $worker),
        };
        if ($handlers !== [] && $handlers[0]->kind === Kind::Command) {
            $this->progress->commands++;
        } else {
            $this->progress->events++;
        }
    }

    /** An event that this program knows may have no listener; anything else must not vanish. */
    private function unhandled(Delivery $delivery): void
    {
        match (true) {
            ($delivery->headers[Header::KIND] ?? null) === Kind::Command->value => throw new NoHandler("No handler for command \"{$delivery->type}\""),
            $this->codec->ofType($delivery->type) === null
                => throw new UnknownMessageType("No handler and no message class of type \"{$delivery->type}\" is known"),
            default => $this->consumer->ack($delivery),
        };
    }

    private function single(Handler $handler, Delivery $delivery, Worker $worker): void
    {
        $message = self::decode($handler->message, $delivery);
        try {
            if ($handler->transactional && $this->shared !== null) {
                $publish = $this->invoker->invoke($handler, $message, $delivery, $this->shared);
                $this->shared->settled($delivery);
            } else {
                $publish = $this->invoker->invoke($handler, $message, $delivery);
                $worker->free($delivery);
                $this->consumer->ack($delivery, $publish);
            }
        } catch (\Throwable $thrown) {
            throw new Failure($thrown, [$handler->name]);
        }
        $this->progress->sent += \count($publish);
    }

    /** @param list<Handler> $handlers each gets a message of its own, since it may change it */
    private function several(array $handlers, Delivery $delivery, Worker $worker): void
    {
        $publish = [];
        $failed = [];
        foreach ($handlers as $handler) {
            $message = self::decode($handler->message, $delivery);
            try {
                \array_push($publish, ...$this->invoker->invoke($handler, $message, $delivery));
            } catch (\Throwable $thrown) {
                $failed[$handler->name] = $thrown;
            }
        }
        $worker->free($delivery);
        if ($failed === []) {
            $this->consumer->ack($delivery, $publish);
        } elseif ($publish !== []) {
            // What the others have published leaves all the same: their effects are there.
            $this->transport->publish($publish);
        }
        $this->progress->sent += \count($publish);
        if ($failed !== []) {
            throw self::listenersFailed($failed, \count($handlers));
        }
    }

    private static function decode(MessageClass $class, Delivery $delivery): object
    {
        $version = $delivery->headers[Header::SCHEMA_VERSION] ?? '1';
        if ($version !== '1' && (int) $version > $class->version) {
            throw MessageDecodingFailed::newerSchema($class->class, $class->version, (string) (int) $version);
        }

        return $class->decode($delivery->body);
    }

    /** @param non-empty-array<string, \Throwable> $failed by handler */
    private static function listenersFailed(array $failed, int $of): Failure
    {
        $names = \array_keys($failed);
        $first = $failed[$names[0]];
        if (\count($failed) === 1) {
            return new Failure($first, $names);
        }
        $error = new ListenersFailed(\count($failed) . " of {$of} listeners failed: " . \implode(', ', $names) . "; first: {$first->getMessage()}", $first);

        return new Failure($error, $names);
    }
}
