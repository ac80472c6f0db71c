<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Log\LoggerInterface;
use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\ListenersFailed;
use Weft\Bus\MessageDecodingFailed;
use Weft\Bus\NoHandler;
use Weft\Bus\Observer;
use Weft\Bus\Progress;
use Weft\Bus\TransactionFinished;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Bus\UnknownMessageType;
use Weft\Sql\Database;

use function Weft\delay;

/**
 * The life of one delivery: decoded, handled, acknowledged; or parked; or given back.
 *
 * @internal
 */
final class Handling
{
    /** Seconds before a message goes back to the queue when not even parking succeeded. */
    private const PAUSE = 1.0;

    /** @param TransactionalConsumer|null $shared the consumer again, when its broker lives in the handlers' database */
    public function __construct(
        private readonly Consumer $consumer,
        private readonly Transport $transport,
        private readonly string $queue,
        private readonly Handlers $handlers,
        private readonly Codec $codec,
        private readonly Envelopes $envelopes,
        private readonly ?Database $database,
        private readonly ?TransactionalConsumer $shared,
        private readonly bool $publishesAtOnce,
        private readonly Progress $progress,
        private readonly LoggerInterface $logger,
        private readonly ?Observer $observer,
    ) {}

    /**
     * Ends with the delivery settled, whatever its handlers do; only a forced stop leaves it unsettled. Throws nothing
     * that a handler throws.
     *
     * @param \Closure(): bool $isForced whether what is in flight has been told to stop at once
     */
    public function run(Delivery $delivery, \Closure $isForced): void
    {
        $started = $this->observer === null ? 0 : \hrtime(true);
        $this->progress->inFlight++;
        try {
            $this->handle($delivery);
            $this->observer?->handled($delivery->type, (\hrtime(true) - $started) / 1e9);
        } catch (\Throwable $thrown) {
            // A forced stop cancels handlers: their messages stay unsettled and go back when the consumer closes.
            if (!$isForced()) {
                $this->fail($delivery, $thrown instanceof Failure ? $thrown : new Failure($thrown));
            }
        } finally {
            $this->progress->inFlight--;
        }
    }

    private function handle(Delivery $delivery): void
    {
        $handlers = $this->handlers->of($delivery->type);
        if ($handlers === []) {
            $this->unhandled($delivery);
        } elseif (\count($handlers) === 1) {
            $this->single($handlers[0], $delivery);
        } else {
            $this->several($handlers, $delivery);
        }
        if ($handlers !== [] && $handlers[0]->kind === Kind::Command) {
            $this->progress->commands++;
        } else {
            $this->progress->events++;
        }
    }

    /** An event that this program knows may have no listener; anything else must not vanish. */
    private function unhandled(Delivery $delivery): void
    {
        $kind = $delivery->headers[Header::KIND] ?? null;
        match (true) {
            $kind === Kind::Command->value => throw new NoHandler("No handler for command \"{$delivery->type}\""),
            $kind !== Kind::Event->value, $this->codec->ofType($delivery->type) === null
                => throw new UnknownMessageType("No handler and no message class of type \"{$delivery->type}\" is known"),
            default => $this->consumer->ack($delivery),
        };
    }

    private function single(Handler $handler, Delivery $delivery): void
    {
        $message = self::decode($handler->message, $delivery);
        try {
            if ($handler->transactional && $this->shared !== null) {
                $publish = $this->invoke($handler, $message, $delivery, $this->shared);
                $this->shared->settled($delivery);
            } else {
                $publish = $this->invoke($handler, $message, $delivery);
                $this->consumer->ack($delivery, $publish);
            }
            $this->progress->sent += \count($publish);
        } catch (\Throwable $thrown) {
            throw new Failure($thrown, [$handler->name]);
        }
    }

    /**
     * Each listener gets a message of its own, since it may change it.
     *
     * @param list<Handler> $handlers
     */
    private function several(array $handlers, Delivery $delivery): void
    {
        $publish = [];
        $failed = [];
        foreach ($handlers as $handler) {
            $message = self::decode($handler->message, $delivery);
            try {
                \array_push($publish, ...$this->invoke($handler, $message, $delivery));
            } catch (\Throwable $thrown) {
                $failed[$handler->name] = $thrown;
            }
        }
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

    /**
     * @return list<Transport\Outgoing> what is left to publish
     */
    private function invoke(Handler $handler, object $message, Delivery $delivery, ?TransactionalConsumer $enlist = null): array
    {
        $outbox = new Outbox($this->envelopes, $this->progress, $this->publishesAtOnce ? $this->transport : null);
        $context = new Context($delivery, $outbox, $this->logger, $this->queue);
        if (!$handler->transactional) {
            ($handler->invoke)($message, $context, null);

            return $outbox->close();
        }
        \assert($this->database !== null);
        $transaction = $this->database->begin();
        try {
            ($handler->invoke)($message, $context, $transaction);
            if (!$transaction->isOpen()) {
                throw new TransactionFinished("{$handler->name}() committed or rolled back the Transaction it was given; the bus does");
            }
            $publish = $outbox->close();
            $enlist?->enlist($transaction, $delivery, $publish);
        } catch (\Throwable $thrown) {
            $transaction->abandon();
            throw $thrown;
        }
        $transaction->commit();

        return $publish;
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

    private function fail(Delivery $delivery, Failure $failure): void
    {
        $this->progress->failed++;
        $this->logger->error('Message {type} {id} failed in {handler}: {error}', [
            'type' => $delivery->type,
            'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
            'handler' => \implode(', ', $failure->handlers),
            'error' => $failure->error->getMessage(),
            'exception' => $failure->error,
        ]);
        $parked = $this->park($delivery, $failure);
        $this->observer?->failed($delivery->type, $failure->error, $parked);
    }

    private function park(Delivery $delivery, Failure $failure): bool
    {
        try {
            $this->consumer->park($delivery, $failure->headers($delivery, $this->queue));
            $this->progress->parked++;

            return true;
        } catch (\Throwable $thrown) {
            $this->logger->critical('Message {type} {id} could not be parked and goes back to the queue: {error}', [
                'type' => $delivery->type,
                'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
                'error' => $thrown->getMessage(),
                'exception' => $thrown,
            ]);
            // The message holds its slot meanwhile, so that a broker in trouble is not asked in a hot loop.
            delay(self::PAUSE);
            $this->consumer->requeue($delivery);

            return false;
        }
    }
}
