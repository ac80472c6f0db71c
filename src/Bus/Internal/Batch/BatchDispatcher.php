<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Batch;

use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Consuming\Dispatcher;
use Weft\Bus\Internal\Consuming\HandlingFailedException;
use Weft\Bus\Internal\Consuming\HandlingInterruptedException;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Consuming\DatabaseOutage;
use Weft\Bus\Internal\Consuming\RetryPolicy;
use Weft\Bus\Internal\Setup;
use Weft\Bus\Internal\Consuming\Worker;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\TransactionalConsumer;

/**
 * Gives many deliveries to one batch handler, publishes what it sends and acknowledges those it has handled.
 *
 * @internal
 */
final class BatchDispatcher
{
    public function __construct(
        private readonly Consumer $consumer,
        private readonly ?TransactionalConsumer $shared,
        private readonly Setup $setup,
        private readonly BatchInvoker $invoker,
        private readonly Dispatcher $dispatcher,
        private readonly ?DatabaseOutage $outage,
    ) {}

    /**
     * @param non-empty-list<Delivery> $deliveries
     * @param list<Delivery>           $requeued those that went back, because the worker was stopped before the handler was called
     * @return list<array{Delivery, HandlingFailedException}> those that were not handled and not acknowledged
     *
     * @throws \Throwable when all of them are to go back: the worker stops
     */
    public function dispatch(Handler $handler, array $deliveries, Worker $worker, array &$requeued): array
    {
        $failed = [];
        $publish = [];
        $done = $this->attempt($handler, $deliveries, $worker, $failed, $publish, $requeued);
        $worker->release($deliveries[0]);
        foreach ($requeued as $delivery) {
            $this->consumer->requeue($delivery);
        }
        if ($this->shared !== null && $handler->transactional) {
            \array_walk($done, $this->shared->settled(...));
        } else {
            $done = $this->settle($handler, $done, $publish, $failed);
        }
        foreach ($done as $delivery) {
            // A batch handler has no replies; the requester learns that the message was handled.
            isset($delivery->headers[Header::REPLY_TO]) && $this->setup->replies->send($delivery, $this->setup->replies->of($delivery, null));
        }
        $this->setup->stats->sent += \count($publish);
        $handler->kind === MessageKind::Command ? $this->setup->stats->commands += \count($done) : $this->setup->stats->events += \count($done);

        return $failed;
    }

    /**
     * @param non-empty-list<Delivery>       $deliveries
     * @param list<array{Delivery, HandlingFailedException}> $failed
     * @param list<Outgoing>                 $publish
     * @param list<Delivery>                 $requeued
     * @param int                            $calls      how often these have failed before
     * @return list<Delivery> to be acknowledged
     */
    private function attempt(Handler $handler, array $deliveries, Worker $worker, array &$failed, array &$publish, array &$requeued, int $calls = 0): array
    {
        $done = [];
        $outages = 0;
        while (true) {
            try {
                [$deliveries, $messages] = $this->decoded($handler, $deliveries, $failed);
                if ($deliveries === []) {
                    return $done;
                }
                $handler->attributes->rateLimit === null || $this->setup->rates->pass($handler, $worker);
                $settled = $this->invoker->invoke($handler, $deliveries, $messages, $handler->attributes->timeout ?? $this->setup->options->timeout);
                break;
            } catch (BatchAlreadyHandledException $before) {
                \array_push($done, ...$this->recognise($handler, $deliveries, $before, $failed));
                $deliveries = \array_values(\array_diff_key($deliveries, $before->items));
                if ($deliveries === []) {
                    return $done;
                }
            } catch (HandlingInterruptedException) {
                // Those of other calls may have been handled.
                \array_push($requeued, ...$deliveries);

                return $done;
            } catch (\Throwable $thrown) {
                if ($worker->isForced()) {
                    throw $thrown;
                }
                if ($this->outage?->wait($thrown, ++$outages, $worker)) {
                    continue;
                }
                if (\count($deliveries) > 1) {
                    /** @var list<non-empty-list<Delivery>> $halves */
                    $halves = \array_chunk($deliveries, \max(1, \intdiv(\count($deliveries) + 1, 2)));
                    foreach ($halves as $half) {
                        \array_push($done, ...$this->attempt($handler, $half, $worker, $failed, $publish, $requeued));
                    }

                    return $done;
                }
                if (!$this->mayTryAgain($handler, $deliveries[0], $thrown, ++$calls, $failed)) {
                    return $done;
                }
            }
        }
        \array_push($done, ...$settled->handled());
        \array_push($publish, ...$settled->close());
        foreach ($settled->failures() as $key => $failure) {
            if ($this->mayTryAgain($handler, $deliveries[$key], $failure, $calls + 1, $failed)) {
                \array_push($done, ...$this->attempt($handler, [$deliveries[$key]], $worker, $failed, $publish, $requeued, $calls + 1));
            }
        }

        return $done;
    }

    /**
     * @param list<Delivery>                 $deliveries
     * @param list<array{Delivery, HandlingFailedException}> $failed
     * @return array{list<Delivery>, list<object>}
     */
    private function decoded(Handler $handler, array $deliveries, array &$failed): array
    {
        $fine = $messages = $broken = [];
        foreach ($deliveries as $delivery) {
            try {
                $messages[] = $this->setup->decoder->decode($handler->message, $delivery);
                $fine[] = $delivery;
            } catch (\Throwable $thrown) {
                // The store for large bodies may be unavailable, which is not a failure of this message.
                $broken[] = RetryPolicy::isFinal($thrown) ? [$delivery, new HandlingFailedException($thrown)] : throw $thrown;
            }
        }
        \array_push($failed, ...$broken);

        return [$fine, $messages];
    }

    /**
     * @param non-empty-list<Delivery>       $deliveries
     * @param list<array{Delivery, HandlingFailedException}> $failed
     * @return list<Delivery> the duplicates
     */
    private function recognise(Handler $handler, array $deliveries, BatchAlreadyHandledException $before, array &$failed): array
    {
        $duplicates = [];
        foreach ($before->items as $key => $isSame) {
            if ($isSame) {
                if ($handler->transactional) {
                    // The transaction with the acknowledgement was rolled back.
                    $this->shared?->ack($deliveries[$key]);
                }
                $duplicates[] = $deliveries[$key];
                $this->setup->stats->duplicates++;
            } else {
                $id = $deliveries[$key]->headers[Header::MESSAGE_ID] ?? '';
                $failed[] = [$deliveries[$key], new HandlingFailedException(new DuplicateMessageIdException("A message with the id {$id} and a different body was handled before"), [$handler->name])];
            }
        }

        return $duplicates;
    }

    /** @param list<array{Delivery, HandlingFailedException}> $failed gets it when not */
    private function mayTryAgain(Handler $handler, Delivery $delivery, \Throwable $thrown, int $calls, array &$failed): bool
    {
        $retry = $this->setup->retries->of($handler, $thrown);
        if ($calls <= ($retry?->immediate ?? 0)) {
            return true;
        }
        $failed[] = [$delivery, new HandlingFailedException($thrown, [$handler->name], $calls, $retry)];

        return false;
    }

    /**
     * @param list<Delivery>                 $done
     * @param list<Outgoing>                 $publish
     * @param list<array{Delivery, HandlingFailedException}> $failed
     * @return list<Delivery> those acknowledged
     */
    private function settle(Handler $handler, array $done, array $publish, array &$failed): array
    {
        try {
            $publish === [] || $this->dispatcher->publish($publish);
        } catch (\Throwable $thrown) {
            foreach ($done as $delivery) {
                $failed[] = [$delivery, new HandlingFailedException($thrown, [$handler->name])];
            }

            return [];
        }
        foreach ($done as $delivery) {
            $this->consumer->ack($delivery);
        }

        return $done;
    }
}
