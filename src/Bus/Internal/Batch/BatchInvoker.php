<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Batch;

use Weft\Bus\BatchItem;
use Weft\Bus\Context;
use Weft\Bus\HandlerTimeoutException;
use Weft\Bus\Internal\Consuming\HandlerTransaction;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\Persistence\DelayedMessages;
use Weft\Bus\Internal\Persistence\InboxBatch;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Internal\Sending\HandlerOutbox;
use Weft\Bus\Internal\Setup;
use Weft\Bus\InvalidMessageException;
use Weft\Bus\Transport;
use Weft\Bus\Transport\DatabaseTransport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Pool\PoolException;
use Weft\Runtime\Internal\CallScope;
use Weft\Runtime\TimeoutException;
use Weft\Runtime\Trace;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

use function Weft\timeout;

/**
 * Calls a batch handler once, in one transaction if it takes one.
 *
 * @internal
 */
final class BatchInvoker
{
    /**
     * @param TransactionalConsumer|null $shared the consumer, when its broker lives in the handlers' database
     * @param Transport|null             $direct where messages of handlers go at once; null keeps them
     * @param Persistence|null                $persistence where it is noted what was handled and sent; null for nowhere
     */
    public function __construct(
        private readonly Setup $setup,
        private readonly ?TransactionalConsumer $shared,
        private readonly ?Transport $direct,
        private readonly ?Persistence $persistence,
        private readonly string $queue,
    ) {}

    /**
     * @param non-empty-list<Delivery> $deliveries
     * @param non-empty-list<object>   $messages   theirs
     * @param float|null               $limit      seconds
     *
     * @throws BatchAlreadyHandledException when that is why it failed; nothing has happened
     */
    public function invoke(Handler $handler, array $deliveries, array $messages, ?float $limit): BatchCall
    {
        $settled = new BatchCall($deliveries, $this->outbox());
        foreach ($deliveries as $key => $delivery) {
            $settled->outboxes[$key] = $outbox = $this->outbox($settled->common);
            $settled->items[$key] = new BatchItem($messages[$key], new Context($delivery, $outbox, $this->setup->logger, $this->queue, $handler->name, $handler->message->class));
        }
        $entries = $this->shared === null || !$handler->transactional || $this->shared->mayDuplicate() ? $this->persistence?->inboxBatch($handler->name, $this->queue) : null;
        $context = new Context($deliveries[0], $settled->common, $this->setup->logger, $this->queue, $handler->name, $handler->message->class);
        $this->setup->current->set($context);
        Trace::enter($context);
        try {
            $handler->transactional ? $this->inTransaction($handler, $settled, $entries, $limit) : $this->outside($handler, $settled, $entries, $limit);
        } catch (\Throwable $thrown) {
            throw $this->explained($thrown, $deliveries, $entries, $handler);
        } finally {
            $settled->close();
        }

        return $settled;
    }

    private function outbox(?HandlerOutbox $call = null): HandlerOutbox
    {
        return new HandlerOutbox($this->setup->envelopes, $this->setup->stats, $this->direct, $this->setup->delays, $call);
    }

    private function inTransaction(Handler $handler, BatchCall $settled, ?InboxBatch $entries, ?float $limit): void
    {
        \assert($this->setup->database !== null);
        $transaction = HandlerTransaction::begin($this->setup->database, $handler->name);
        try {
            $this->call($handler, $settled, $transaction, $limit);
            $this->note($transaction, $settled, $entries, $this->shared);
        } catch (\Throwable $thrown) {
            $transaction->abandon();
            throw $thrown;
        }
        $transaction->finish();
        $entries === null && $this->shared === null && $this->keep($settled);
    }

    private function outside(Handler $handler, BatchCall $settled, ?InboxBatch $entries, ?float $limit): void
    {
        $this->call($handler, $settled, null, $limit);
        if ($entries === null) {
            $this->keep($settled);
        } elseif ($settled->close() !== [] || $settled->delayed() !== []) {
            $this->setup->database?->transaction(fn(Transaction $transaction) => $this->note($transaction, $settled, $entries, null));
        }
    }

    private function call(Handler $handler, BatchCall $settled, ?Transaction $transaction, ?float $limit): void
    {
        if ($transaction !== null) {
            $this->setup->current->value()?->joins($transaction);
            foreach ($settled->items as $item) {
                $item->context->joins($transaction);
            }
        }
        $items = self::admitted($handler, $settled);
        if ($items === []) {
            return;
        }
        $invoke = $handler->invoke;
        if ($limit === null) {
            CallScope::call($invoke, $items, $transaction);

            return;
        }
        $inner = null;
        try {
            timeout($limit, static function () use ($invoke, $items, $transaction, &$inner): void {
                try {
                    $invoke($items, $transaction);
                    $transaction?->isOpen() && $transaction->flush();
                } catch (\Throwable $thrown) {
                    $inner = $thrown;
                    throw $thrown;
                }
            });
        } catch (TimeoutException $expired) {
            throw $expired === $inner ? $expired : new HandlerTimeoutException("{$handler->name}() did not handle a batch of " . \count($items) . " within {$limit} seconds: {$expired->getMessage()}", $expired);
        }
    }

    /** @return list<BatchItem> those that are valid, or whose violations the handler wants to see */
    private static function admitted(Handler $handler, BatchCall $settled): array
    {
        $admitted = [];
        foreach ($settled->items as $item) {
            try {
                if ($handler->attributes->validation?->accepts($item->message, $item->context) ?? true) {
                    $admitted[] = $item;
                }
            } catch (InvalidMessageException $invalid) {
                $item->fail($invalid);
            }
        }

        return $admitted;
    }

    /** @param TransactionalConsumer|null $enlist publishes and acknowledges in the transaction; null publishes from the outbox */
    private function note(Transaction $transaction, BatchCall $settled, ?InboxBatch $entries, ?TransactionalConsumer $enlist): void
    {
        $sent = $settled->close();
        $handled = $settled->handled();
        $entries?->note($transaction, $handled);
        if ($enlist !== null) {
            foreach ($handled as $key => $delivery) {
                // All messages are published with the first acknowledgement: it is one transaction.
                $enlist->enlist($transaction, $delivery, $key === 0 ? $sent : []);
            }
            $handled === [] && $sent !== [] && $this->publish($transaction, $sent);
        } elseif ($entries !== null) {
            $entries->send($transaction, $sent);
        } else {
            return;
        }
        foreach ($settled->delayed() as [$message, $due]) {
            \assert($this->setup->delays instanceof DelayedMessages);
            $this->setup->delays->add($transaction, $message, $due);
        }
    }

    /**
     * Publishes what the handler has sent if every item failed, and no acknowledgement publishes it.
     *
     * @param non-empty-list<Outgoing> $sent
     */
    private function publish(Transaction $transaction, array $sent): void
    {
        $transport = $this->setup->transport;
        $transport instanceof DatabaseTransport ? $transport->publishIn($transaction, null, $sent) : $transport->publish($sent);
    }

    private function keep(BatchCall $settled): void
    {
        $settled->close();
        foreach ($settled->delayed() as [$message, $due]) {
            $this->setup->delays?->store($message, $due);
        }
    }

    /** @param non-empty-list<Delivery> $deliveries */
    private function explained(\Throwable $thrown, array $deliveries, ?InboxBatch $entries, Handler $handler): \Throwable
    {
        try {
            $handled = $entries?->handled($deliveries) ?? [];
        } catch (PoolException | SqlException) {
            return $thrown;
        }

        return $handled === [] ? $thrown : ($handler->transactional ? HandlerTransaction::endedBy($thrown, $handler->name) : null) ?? new BatchAlreadyHandledException($handled, $thrown);
    }
}
