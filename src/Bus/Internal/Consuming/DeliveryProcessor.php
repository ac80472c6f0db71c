<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Psr\Log\LoggerInterface;
use Psr\Log\LogLevel;
use Weft\Bus\Header;
use Weft\Bus\Internal\Batch\BatchDispatcher;
use Weft\Bus\Internal\Random;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\Persistence\DelayedMessages;
use Weft\Bus\Internal\Metrics;
use Weft\Bus\Internal\Requests\Replies;
use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\Internal\Serializing\DeliveryOpener;
use Weft\Bus\Internal\Setup;
use Weft\Bus\Observer;
use Weft\Bus\BusStats;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Runtime\Internal\CallScope;
use Weft\Sql\Transaction;

use function Weft\delay;
use function Weft\Native\messageId;

/**
 * The life cycle of one delivery: it is handled, retried later, dead-lettered or requeued.
 *
 * @internal
 */
final class DeliveryProcessor
{
    /** Seconds until a message is requeued that could not be dead-lettered. */
    private const REQUEUE_DELAY = 1.0;

    /** Stores messages for delayed retries; null dead-letters them instead. */
    private readonly ?DelayStore $delays;

    private readonly Replies $replies;
    private readonly BusStats $stats;
    private readonly LoggerInterface $logger;
    private readonly ?Observer $observer;

    /** Null where the queue has no formats of its own. */
    private readonly ?DeliveryOpener $opener;

    /** Null when metrics are disabled. */
    private readonly ?Metrics $metrics;

    /**
     * @param TransactionalConsumer|null $shared the consumer again, when its broker lives in the bus's database
     * @param CrashGuard|null $suspicion what to do with messages that may have crashed a worker; null does not ask
     */
    public function __construct(
        private readonly Consumer $consumer,
        private readonly string $queue,
        private readonly Dispatcher $dispatcher,
        private readonly BatchDispatcher $batches,
        private readonly ?TransactionalConsumer $shared,
        private readonly ?CrashGuard $suspicion,
        Setup $setup,
    ) {
        $this->delays = $setup->delays;
        $this->replies = $setup->replies;
        $this->stats = $setup->stats;
        $this->logger = $setup->logger;
        $this->observer = $setup->options->observer;
        $this->metrics = Metrics::of($setup->codec);
        $this->opener = $setup->opener($queue);
    }

    /**
     * Ends with the delivery settled in every case; only a forced stop leaves it unsettled. Exceptions of handlers do not
     * propagate.
     *
     * @param (\Closure(): void)|null $failing of a message that is in an order: called before a failed one is settled, and
     *                                         what is given back keeps its place here instead of going to the queue
     */
    public function run(Delivery $delivery, Worker $worker, ?\Closure $failing = null): Outcome
    {
        $started = $this->observer === null && $this->metrics === null ? 0 : \hrtime(true);
        if ($this->opener !== null && $delivery->serializer === null) {
            // It has waited in the database for its key.
            $delivery = $this->opener->open($delivery);
        }
        $this->stats->inFlight++;
        $this->metrics?->began($delivery->type, $delivery->redelivered);
        try {
            if (isset($delivery->headers[Header::EXPIRES_AT]) && $this->dispatcher->drops($delivery)) {
                return Outcome::Succeeded;
            }
            $handled = $this->suspicion === null || !$delivery->redelivered
                ? $this->dispatcher->dispatch($delivery, $worker)
                : $this->guarded($this->suspicion, $delivery, $worker);
            if ($this->metrics !== null) {
                $handled ? $this->metrics->succeeded($delivery->type, (\hrtime(true) - $started) / 1e9) : $this->metrics->count('failed', $delivery->type);
            }
            $this->observer === null || $this->tell(fn() => $this->observer?->succeeded($delivery->type, (\hrtime(true) - $started) / 1e9));

            $worker->concurrency->breaker?->succeeded($delivery->tag);

            return Outcome::Succeeded;
        } catch (HandlingInterruptedException) {
            $worker->release($delivery);
            $failing === null && $this->consumer->requeue($delivery);

            return Outcome::Requeued;
        } catch (\Throwable $thrown) {
            // A forced stop cancels handlers. Their messages stay unsettled and are requeued when the consumer closes.
            if ($worker->isForced()) {
                return Outcome::Requeued;
            }
            $worker->release($delivery);

            $worker->concurrency->breaker?->failed($delivery->tag, $thrown instanceof HandlingFailedException ? $thrown->error : $thrown);

            return $this->fail($delivery, $thrown instanceof HandlingFailedException ? $thrown : new HandlingFailedException($thrown), $failing);
        } finally {
            $this->stats->inFlight--;
            $this->metrics?->ended($delivery->type);
        }
    }

    private function guarded(CrashGuard $suspicion, Delivery $delivery, Worker $worker): bool
    {
        $handled = false;
        $suspicion->guard($delivery, $worker, function () use ($delivery, $worker, &$handled): void {
            $handled = $this->dispatcher->dispatch($delivery, $worker);
        });

        return $handled;
    }

    /**
     * The same for many deliveries of a batch handler.
     *
     * @param non-empty-list<Delivery> $deliveries one where it may have crashed a worker
     */
    public function runBatch(Handler $handler, array $deliveries, Worker $worker): void
    {
        $started = \hrtime(true);
        $count = \count($deliveries);
        $tag = $deliveries[0]->tag;
        $type = $deliveries[0]->type;
        $this->stats->inFlight += $count;
        $this->metrics?->began($type, $deliveries[0]->redelivered, $count);
        $failed = $requeued = [];
        try {
            $deliveries = \array_values(\array_filter($deliveries, fn(Delivery $delivery): bool => !isset($delivery->headers[Header::EXPIRES_AT]) || !$this->dispatcher->drops($delivery)));
            if ($deliveries === []) {
                return;
            }
            $handle = function () use ($handler, $deliveries, $worker, &$failed, &$requeued): void {
                $failed = $this->batches->dispatch($handler, $deliveries, $worker, $requeued);
            };
            $this->suspicion === null || !$deliveries[0]->redelivered ? $handle() : $this->suspicion->guard($deliveries[0], $worker, $handle);
            \count($failed) + \count($requeued) === \count($deliveries) || $worker->concurrency->breaker?->succeeded($tag);
            foreach ($failed as [$delivery, $failure]) {
                $worker->concurrency->breaker?->failed($tag, $failure->error);
                $this->fail($delivery, $failure);
            }
            /** @var list<Delivery> $lost */
            $lost = \array_column($failed, 0);
            $this->tellOfBatch($deliveries, [...$lost, ...$requeued], (\hrtime(true) - $started) / 1e9);
        } catch (HandlingInterruptedException) {
            $worker->release($deliveries[0]);
            \array_walk($deliveries, $this->consumer->requeue(...));
        } catch (\Throwable $thrown) {
            if (!$worker->isForced()) {
                $worker->release($deliveries[0]);
                foreach ($deliveries as $delivery) {
                    $this->fail($delivery, $thrown instanceof HandlingFailedException ? $thrown : new HandlingFailedException($thrown, [$handler->name]));
                }
            }
        } finally {
            $this->stats->inFlight -= $count;
            $this->metrics?->ended($type, $count);
        }
    }

    /**
     * @param list<Delivery> $deliveries
     * @param list<Delivery> $failed with those that went back
     */
    private function tellOfBatch(array $deliveries, array $failed, float $seconds): void
    {
        if ($this->observer === null && $this->metrics === null) {
            return;
        }
        foreach ($deliveries as $delivery) {
            if (!\in_array($delivery, $failed, true)) {
                $this->metrics?->succeeded($delivery->type, $seconds);
                $this->tell(fn() => $this->observer?->succeeded($delivery->type, $seconds));
            }
        }
    }

    /** Dead-letters a delivery without calling a handler. */
    public function refuse(Delivery $delivery, \Throwable $why): void
    {
        $this->fail($delivery, new HandlingFailedException($why));
    }

    private function fail(Delivery $delivery, HandlingFailedException $failure, ?\Closure $failing = null): Outcome
    {
        $this->stats->failed++;
        $this->metrics?->count('failed', $delivery->type);
        $later = [];
        $dead = [];
        foreach ($failure->parts() as $part) {
            $retry = $this->delays === null ? null : $part->retry;
            $retry !== null && self::rounds($delivery) < $retry->delayed ? $later[] = $part : $dead[] = $part;
        }
        $this->report($delivery, $failure, $dead === []);
        if ($dead !== [] && isset($delivery->headers[Header::REPLY_TO])) {
            $this->replies->send($delivery, $this->replies->ofFailure($delivery, $failure->error));
        }
        try {
            $failing === null || $failing();
            $lost = $dead === [] || $later === [] ? $failure : HandlingFailedException::together($dead, \count($dead));
            $outcome = $this->settle($delivery, $later, $lost, $dead !== []) ? Outcome::DeadLettered : Outcome::PutOff;
        } catch (\Throwable $thrown) {
            $this->giveBack($delivery, $thrown, $failing === null);
            $outcome = Outcome::Requeued;
        }
        $this->tell(fn() => $this->observer?->failed($delivery->type, $failure->error, $outcome === Outcome::DeadLettered));

        return $outcome;
    }

    private function report(Delivery $delivery, HandlingFailedException $failure, bool $comesBack): void
    {
        $this->logger->log($comesBack ? LogLevel::WARNING : LogLevel::ERROR, $failure->handlers === []
            ? 'Message {type} {id} could not be handled: {error}'
            : 'Message {type} {id} failed in {handler}: {error}', [
            'type' => $delivery->type,
            'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
            'handler' => \implode(', ', $failure->handlers),
            'attempts' => $failure->attempts($delivery),
            'error' => $failure->description(),
            'exception' => $failure->error,
        ]);
    }

    /** @return non-negative-int */
    private static function rounds(Delivery $delivery): int
    {
        return \max(0, (int) ($delivery->headers[Header::RETRIES] ?? 0));
    }

    /**
     * Stores copies for delayed retries, then the dead letter, then acknowledges.
     *
     * @param list<HandlingFailedException> $later
     * @param bool                          $isDead whether it is dead-lettered in any case
     * @return bool whether it was dead-lettered, as a message is whose copy cannot be stored
     */
    private function settle(Delivery $delivery, array $later, HandlingFailedException $failure, bool $isDead): bool
    {
        if ($later !== [] && !$isDead && $this->shared !== null && $this->delays instanceof DelayedMessages) {
            $this->swap($this->shared, $this->delays, $delivery, $later);

            return false;
        }
        $isStored = $later === [] || $this->putOff($delivery, $later);
        if ($isStored && !$isDead) {
            $this->consumer->ack($delivery);

            return false;
        }
        $this->consumer->deadLetter($delivery, $failure->headers($delivery, $this->queue));
        $this->stats->deadLettered++;
        $this->metrics?->count('dead_lettered', $delivery->type);

        return true;
    }

    /** Requeues a failed message that could not be settled, unless it keeps its place in an order. */
    private function giveBack(Delivery $delivery, \Throwable $why, bool $requeue): void
    {
        $this->logger->log(LogLevel::CRITICAL, 'Message {type} {id} could not be dead-lettered and is requeued: {error}', [
            'type' => $delivery->type,
            'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
            'error' => $why->getMessage(),
            'exception' => $why,
        ]);
        // The message occupies the prefetch meanwhile, so that a failing broker is not called in a tight loop.
        delay(self::REQUEUE_DELAY);
        $requeue && $this->consumer->requeue($delivery);
    }

    /**
     * @param non-empty-list<HandlingFailedException> $later
     * @return bool false when this message cannot be stored, now or later
     */
    private function putOff(Delivery $delivery, array $later): bool
    {
        [$copy, $pause] = $this->copy($delivery, $later);
        try {
            $this->delays?->storeRetry($copy, $this->queue, $pause);
        } catch (PublishException | \Error $thrown) {
            if ($thrown instanceof PublishException && !$thrown->refused) {
                throw $thrown;
            }
            $this->logger->log(LogLevel::ERROR, 'Message {type} {id} could not be stored for a retry and is dead-lettered: {error}', [
                'type' => $delivery->type,
                'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
                'error' => $thrown->getMessage(),
                'exception' => $thrown,
            ]);

            return false;
        }
        $this->stats->retried++;
        $this->metrics?->count('retried', $delivery->type);

        return true;
    }

    /**
     * Puts a message off and acknowledges it in one transaction.
     *
     * @param non-empty-list<HandlingFailedException> $later
     */
    private function swap(TransactionalConsumer $consumer, DelayedMessages $delays, Delivery $delivery, array $later): void
    {
        [$copy, $pause] = $this->copy($delivery, $later);
        $delays->database->transaction(function (Transaction $transaction) use ($consumer, $delays, $delivery, $copy, $pause): void {
            $delays->addRetry($transaction, $copy, $this->queue, $pause);
            $consumer->enlist($transaction, $delivery, []);
        });
        $consumer->settled($delivery);
        $delays->earlier->notify();
        $this->stats->retried++;
        $this->metrics?->count('retried', $delivery->type);
    }

    /**
     * @param non-empty-list<HandlingFailedException> $failures
     * @return array{Outgoing, float} what comes back, and after how many seconds
     */
    private function copy(Delivery $delivery, array $failures): array
    {
        $round = self::rounds($delivery) + 1;
        $failure = HandlingFailedException::together($failures, \count($failures));
        $pause = \max(\array_map(static fn(HandlingFailedException $part): float => $part->retry?->delayFor($round, Random::value()) ?? 0.0, $failures));
        $headers = [
            Header::ATTEMPTS => (string) $failure->attempts($delivery),
            Header::RETRIES => (string) $round,
            Header::FAILED_HANDLER => \implode(', ', $failure->handlers),
        ] + $failure->errorHeaders() + $delivery->headers;
        if (($headers[Header::MESSAGE_ID] ?? '') === '') {
            // Waiting messages are identified by their id.
            $headers[Header::MESSAGE_ID] = messageId();
        }

        return [new Outgoing($delivery->type, $delivery->body, $headers), $pause];
    }

    /** An observer must not affect the outcome of a message. */
    private function tell(\Closure $observation): void
    {
        try {
            CallScope::call($observation);
        } catch (\Throwable $thrown) {
            $this->logger->log(LogLevel::ERROR, 'The observer of queue {queue} failed: {error}', [
                'queue' => $this->queue,
                'error' => $thrown->getMessage(),
                'exception' => $thrown,
            ]);
        }
    }
}
