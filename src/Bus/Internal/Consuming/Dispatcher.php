<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\ClaimLostException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\Handlers\Handlers;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Persistence\AlreadyHandledException;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Internal\Setup;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\NoHandlerException;
use Weft\Bus\BusStats;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Bus\UnknownMessageTypeException;
use Weft\Bus\UnroutableMessageException;
use Weft\Pool\PoolException;
use Weft\Sql\SqlException;

use function Weft\delay;

/**
 * Calls the handlers of a delivery, publishes what they send, and acknowledges it.
 *
 * @internal
 */
final class Dispatcher
{
    /** Seconds until messages of an order are published again. */
    private const PUBLISH_INTERVAL = 1.0;

    /** Seconds after which a wait notices that the worker stops. */
    private const STOP_INTERVAL = 0.1;

    private readonly Handlers $handlers;
    private readonly BusStats $stats;

    /**
     * @param TransactionalConsumer|null $shared the consumer again, when its broker lives in the handlers' database
     * @param Persistence|null                $persistence where what handlers send is noted until the broker has it
     */
    public function __construct(
        private readonly Consumer $consumer,
        private readonly ?TransactionalConsumer $shared,
        private readonly Setup $setup,
        private readonly Invoker $invoker,
        private readonly ?DatabaseOutage $outage,
        private readonly ?Persistence $persistence,
    ) {
        $this->handlers = $setup->handlers;
        $this->stats = $setup->stats;
    }

    /**
     * @return bool false where it is done with although its handler has failed: a query's is answered, and not tried again
     * @throws \Throwable when the delivery was not acknowledged; a {@see HandlingFailedException} knows the handlers at fault
     */
    public function dispatch(Delivery $delivery, Worker $worker): bool
    {
        if ($delivery->damage !== null) {
            throw $delivery->damage;
        }
        $handlers = $this->handlers->of($delivery->type);
        $isCommand = $handlers !== [] && $handlers[0]->kind !== MessageKind::Event;
        if (!$isCommand && isset($delivery->headers[Header::FAILED_HANDLER])) {
            $handlers = self::failedBefore($handlers, $delivery);
        }
        $handled = match (\count($handlers)) {
            0 => $this->unhandled($delivery),
            1 => $handlers[0]->kind === MessageKind::Query && isset($delivery->headers[Header::REPLY_TO])
                ? $this->query($handlers[0], $delivery, $worker)
                : $this->single($handlers[0], $delivery, $worker),
            default => $this->several($handlers, $delivery, $worker),
        };
        if ($isCommand) {
            $this->stats->commands++;

            return $handled;
        }
        $this->stats->events++;
        if (isset($delivery->headers[Header::REPLY_TO])) {
            $this->setup->replies->send($delivery, $this->setup->replies->ofFailure($delivery, new NoHandlerException("\"{$delivery->type}\" is an event here; only commands and queries are answered")));
        }

        return $handled;
    }

    /**
     * The listeners a message comes back for.
     *
     * @param list<Handler> $handlers
     * @return list<Handler>
     * @throws NoHandlerException when one of them is no longer there
     */
    private static function failedBefore(array $handlers, Delivery $delivery): array
    {
        $names = \array_filter(\explode(', ', $delivery->headers[Header::FAILED_HANDLER]));
        $now = \array_map(static fn(Handler $handler): string => $handler->name, $handlers);
        $former = \array_map(static fn(Handler $handler): ?string => $handler->formerName, $handlers);
        $failed = [];
        foreach ($names as $name) {
            $found = \array_keys($now, $name, true) ?: \array_keys($former, $name, true);
            if ($found === []) {
                $listeners = $now === [] ? 'it has no listeners' : 'its listeners are ' . \implode(', ', $now);
                throw new NoHandlerException("The message is retried for {$name}, which no longer handles \"{$delivery->type}\"; {$listeners}. Add a listener of that name, or publish the event again");
            }
            $failed += \array_flip($found);
        }

        return $names === [] ? $handlers : \array_values(\array_intersect_key($handlers, $failed));
    }

    /** A known event may have no listener; any other message must not be dropped. */
    private function unhandled(Delivery $delivery): true
    {
        match (true) {
            ($delivery->headers[Header::KIND] ?? null) === MessageKind::Command->value => throw new NoHandlerException("No handler for command \"{$delivery->type}\""),
            $this->setup->codec->ofType($delivery->type) === null
                => throw new UnknownMessageTypeException("No handler and no message class is registered for type \"{$delivery->type}\""),
            default => $this->consumer->ack($delivery),
        };

        return true;
    }

    /** @return bool whether no handler needs the message; then it is acknowledged */
    public function drops(Delivery $delivery): bool
    {
        $expires = $delivery->headers[Header::EXPIRES_AT];
        if (!\is_numeric($expires) || (float) $expires >= Clock::now() * 1000) {
            return false;
        }
        $message = ['type' => $delivery->type, 'id' => $delivery->headers[Header::MESSAGE_ID] ?? ''];
        if (isset($delivery->headers[Header::RETRIES])) {
            $this->setup->logger->warning('Message {type} {id} expired while it waited for a retry, and is no dead letter; failed attempts: {attempts}, in {handler}, the last with {error}', $message + [
                'attempts' => $delivery->headers[Header::ATTEMPTS] ?? '',
                'handler' => $delivery->headers[Header::FAILED_HANDLER] ?? '',
                'error' => ($delivery->headers[Header::ERROR_CLASS] ?? '') . ': ' . ($delivery->headers[Header::ERROR_MESSAGE] ?? ''),
            ]);
        } else {
            $this->setup->logger->info('Message {type} {id} expired before it was handled', $message);
        }
        $this->consumer->ack($delivery);
        $this->stats->expired++;

        return true;
    }

    /** The requester gets a reply in any case; a failed query is not stored. */
    private function query(Handler $handler, Delivery $delivery, Worker $worker): bool
    {
        try {
            return $this->single($handler, $delivery, $worker);
        } catch (\Throwable $thrown) {
            if ($thrown instanceof HandlingInterruptedException || $worker->isForced()) {
                throw $thrown;
            }
            // It fails without a handler when it cannot be decoded.
            $failure = $thrown instanceof HandlingFailedException ? $thrown : new HandlingFailedException($thrown);
            $this->stats->failed++;
            $this->setup->logger->warning('Query {type} {id} failed in {handler}: {error}', [
                'type' => $delivery->type,
                'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
                'handler' => $handler->name,
                'error' => $failure->description(),
                'exception' => $failure->error,
            ]);
            $this->setup->replies->send($delivery, $this->setup->replies->ofFailure($delivery, $failure->error));
            $this->consumer->ack($delivery);

            return false;
        }
    }

    private function single(Handler $handler, Delivery $delivery, Worker $worker): true
    {
        $enlist = $handler->transactional ? $this->shared : null;
        $publish = $this->call($handler, $delivery, $worker, $enlist, $reply);
        $reply === null || $this->setup->replies->send($delivery, $reply);
        if ($enlist !== null) {
            $enlist->settled($delivery);
        } else {
            $worker->release($delivery);
            try {
                $this->settle($delivery, $publish, $worker);
            } catch (\Throwable $thrown) {
                throw new HandlingFailedException($thrown, [$handler->name]);
            }
        }
        $this->stats->sent += \count($publish);

        return true;
    }

    /** @param list<Handler> $handlers each gets a message of its own, since it may change it */
    private function several(array $handlers, Delivery $delivery, Worker $worker): true
    {
        $publish = [];
        $failed = [];
        foreach ($handlers as $handler) {
            try {
                \array_push($publish, ...$this->call($handler, $delivery, $worker));
            } catch (HandlingFailedException $failure) {
                $failed[] = $failure;
            }
        }
        $worker->release($delivery);
        if ($failed === []) {
            $this->settle($delivery, $publish, $worker);
        } elseif ($publish !== []) {
            // The effects of the successful listeners are committed, so their messages are published.
            $this->publish($publish, $worker->keepsOrder($delivery) ? $worker : null);
        }
        $this->stats->sent += \count($publish);
        if ($failed !== []) {
            throw HandlingFailedException::together($failed, \count($handlers));
        }

        return true;
    }

    /**
     * Calls a handler, and calls it again at once as long as that may help.
     *
     * @param Outgoing|null $reply for who waits for one
     * @return list<Outgoing> what it has sent
     * @throws HandlingFailedException
     * @throws MessageDecodingException|ClaimLostException|HandlingInterruptedException no handler was reached
     */
    private function call(Handler $handler, Delivery $delivery, Worker $worker, ?TransactionalConsumer $enlist = null, ?Outgoing &$reply = null): array
    {
        $calls = $outages = 0;
        while (true) {
            $message = null;
            try {
                $handler->attributes->rateLimit === null || $this->setup->rates->pass($handler, $worker);
                $message = isset($delivery->headers[Header::SCHEMA_VERSION]) || isset($delivery->headers[Header::CLAIM]) || $handler->message->version !== 1
                    || $delivery->serializer !== null || $handler->message->serializer !== null
                    ? $this->setup->decoder->decode($handler->message, $delivery)
                    : $handler->message->decode($delivery->body, id: $delivery->headers[Header::MESSAGE_ID] ?? '');
                if ($handler->turn === null) {
                    return $this->invoker->invoke($handler, $message, $delivery, $enlist, $reply);
                }

                return $this->setup->inTurn->synchronized(
                    (string) ($handler->turn)($message, $delivery->headers),
                    function () use ($handler, $message, $delivery, $enlist, &$reply): array {
                        return $this->invoker->invoke($handler, $message, $delivery, $enlist, $reply);
                    },
                );
            } catch (AlreadyHandledException) {
                $this->stats->duplicates++;
                $worker->keepsOrder($delivery) && $this->settleOrder($delivery);
                // The transaction with the acknowledgement was rolled back.
                $enlist?->ack($delivery);
                $reply = isset($delivery->headers[Header::REPLY_TO])
                    ? $this->setup->replies->ofFailure($delivery, new AlreadyHandledException('it was already handled, and replies are not stored'))
                    : null;

                return [];
            } catch (\Throwable $thrown) {
                if ($thrown instanceof HandlingInterruptedException || $worker->isForced() || ($message === null && RetryPolicy::isFinal($thrown))) {
                    throw $thrown;
                }
                if ($this->outage?->wait($thrown, ++$outages, $worker)) {
                    continue;
                }
                $calls++;
                $retry = $this->setup->retries->of($handler, $thrown);
                if ($calls > ($retry?->immediate ?? 0)) {
                    throw new HandlingFailedException($thrown, [$handler->name], $calls, $retry);
                }
            }
        }
    }

    /**
     * Publishes what a message has sent that was handled before, and whose worker may have ended after its commit: later messages of its key
     * must not send theirs first.
     *
     * @throws HandlingInterruptedException
     */
    private function settleOrder(Delivery $delivery): void
    {
        try {
            $this->persistence?->relay->settleOrder($delivery->headers[Header::MESSAGE_ID]);
        } catch (PublishException | PoolException | SqlException $exception) {
            $this->setup->logger->warning('What message {type} {id} has sent could not be published, and later messages of its key wait: {error}', [
                'type' => $delivery->type,
                'id' => $delivery->headers[Header::MESSAGE_ID],
                'error' => $exception->getMessage(),
                'exception' => $exception,
            ]);
            throw new HandlingInterruptedException('The outbox could not be published', previous: $exception);
        }
    }

    /** @param list<Outgoing> $publish */
    private function settle(Delivery $delivery, array $publish, Worker $worker): void
    {
        if ($this->persistence === null || $publish === []) {
            $this->consumer->ack($delivery, $publish);

            return;
        }
        $this->publish($publish, $worker->keepsOrder($delivery) ? $worker : null);
        $this->consumer->ack($delivery);
    }

    /**
     * Publishes a handler's messages after its transaction has committed.
     *
     * @param list<Outgoing> $messages
     * @param Worker|null    $inOrder  of a message in an order: the next of its key may send later ones, so this one is not done before its
     *                                 own are published or the worker stops; the next worker first publishes the rest. A message that the
     *                                 broker rejects, such as for a full queue, is not waited for: this consumer may be the one to make room
     * @throws UnroutableMessageException|PublishException only where they are not noted
     */
    public function publish(array $messages, ?Worker $inOrder = null): void
    {
        $isRepeated = false;
        do {
            try {
                $this->setup->transport->publish($messages);
                $this->persistence?->sent($messages);

                return;
            } catch (UnroutableMessageException | PublishException $exception) {
                if ($this->persistence === null) {
                    throw $exception;
                }
                // The messages are in the outbox, and the handler has committed.
                $isRepeated || $this->setup->logger->error('{count} messages could not be published and stay in the outbox: {error}', ['count' => \count($messages), 'error' => $exception->getMessage(), 'exception' => $exception]);
                $isRepeated = true;
            }
        } while ($inOrder !== null && $exception instanceof PublishException && !$exception->refused && !$exception->nacked && $this->remain($messages, $inOrder));
    }

    /**
     * Waits before messages are published again.
     *
     * @param list<Outgoing> $messages
     * @return bool false when the relay has published them meanwhile, or the worker stops
     */
    private function remain(array $messages, Worker $worker): bool
    {
        $until = Clock::monotonic() + self::PUBLISH_INTERVAL;
        while (!$worker->isStopping() && Clock::monotonic() < $until) {
            delay(self::STOP_INTERVAL);
        }
        if ($worker->isStopping()) {
            return false;
        }
        try {
            return $this->persistence?->holds($messages) ?? false;
        } catch (PoolException | SqlException) {
            return true;
        }
    }
}
