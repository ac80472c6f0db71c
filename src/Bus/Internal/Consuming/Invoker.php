<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\Context;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Persistence\AlreadyHandledException;
use Weft\Bus\Internal\Persistence\DelayedMessages;
use Weft\Bus\Internal\Persistence\InboxEntry;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\Internal\Sending\HandlerOutbox;
use Weft\Bus\Internal\Setup;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Runtime\Internal\CallScope;
use Weft\Runtime\Trace;
use Weft\Sql\Transaction;

/**
 * Calls one handler for one delivery, in a transaction if it takes one.
 *
 * @internal
 */
final class Invoker
{
    private readonly ?DelayStore $delays;

    /**
     * @param Transport|null $direct where messages of handlers go at once; null keeps them until the handler is done
     * @param Persistence|null    $persistence where it is noted what was handled and sent; null for nowhere
     */
    public function __construct(
        private readonly Setup $setup,
        private readonly ?Transport $direct,
        private readonly ?Persistence $persistence,
        private readonly string $queue,
    ) {
        $this->delays = $setup->delays;
    }

    /**
     * @param TransactionalConsumer|null $enlist publishes and acknowledges in the handler's transaction
     * @param Outgoing|null              $reply for who waits for one
     * @return list<Outgoing> messages of the handler that were not published immediately; none when the handler throws
     *
     * @throws AlreadyHandledException when the handler has handled the message before; then it had no effect this time
     */
    public function invoke(Handler $handler, object $message, Delivery $delivery, ?TransactionalConsumer $enlist = null, ?Outgoing &$reply = null): array
    {
        $outbox = new HandlerOutbox($this->setup->envelopes, $this->setup->stats, $this->direct, $this->delays);
        $context = new Context($delivery, $outbox, $this->setup->logger, $this->queue, $handler->name, $handler->message->class);
        $entry = ($enlist === null || $enlist->mayDuplicate()) && $handler->kind !== MessageKind::Query ? $this->persistence?->inboxEntry($delivery, $handler->name, $this->queue) : null;
        $this->setup->current->set($context);
        Trace::enter($context);
        try {
            $this->run($handler, $message, $context, $outbox, $entry, $enlist === null ? null : function (Transaction $transaction) use ($enlist, $delivery, $outbox): void {
                $enlist->enlist($transaction, $delivery, $outbox->close());
                $this->storeDelayed($transaction, $outbox);
            });
        } catch (\Throwable $thrown) {
            if ($entry?->wasHandled()) {
                throw ($handler->transactional ? HandlerTransaction::endedBy($thrown, $handler->name) : null) ?? new AlreadyHandledException(previous: $thrown);
            }
            throw $thrown;
        } finally {
            $publish = $outbox->close();
        }
        $reply = $outbox->reply;

        return $publish;
    }

    /** @param (\Closure(Transaction): void)|null $enlist */
    private function run(Handler $handler, object $message, Context $context, HandlerOutbox $outbox, ?InboxEntry $entry, ?\Closure $enlist): void
    {
        if ($handler->transactional) {
            $this->inTransaction($handler, $message, $context, $outbox, $entry, $enlist
                ?? ($entry === null ? null : fn(Transaction $transaction) => $this->note($transaction, $entry, $outbox)));
            $entry === null && $enlist === null && $this->keep($outbox);

            return;
        }
        if ($entry !== null && $context->redelivered() && $entry->wasHandled()) {
            throw new AlreadyHandledException();
        }
        $returned = CallScope::call($handler->invoke, $message, $context, null);
        $handler->kind !== MessageKind::Event && $context->wantsReply() && $this->encodeReply($outbox, $context, $returned);
        if ($entry === null) {
            $this->keep($outbox);
        } elseif ($outbox->close() !== [] || $outbox->delayed() !== []) {
            // The bus does not know its effects; what it sends is still published once.
            $this->setup->database?->transaction(function (Transaction $transaction) use ($entry, $outbox): void {
                $entry->open($transaction);
                $this->note($transaction, $entry, $outbox);
            });
        }
    }

    /** Encodes the reply now, so that one that cannot be encoded fails the handler. */
    private function encodeReply(HandlerOutbox $outbox, Context $context, mixed $value): void
    {
        $outbox->reply = $this->setup->replies->of($context->delivery(), $value, $context->transaction());
    }

    private function note(Transaction $transaction, InboxEntry $entry, HandlerOutbox $outbox): void
    {
        $entry->send($transaction, $outbox->close());
        $this->storeDelayed($transaction, $outbox);
    }

    /** Delayed messages are stored in the handler's own database. */
    private function storeDelayed(Transaction $transaction, HandlerOutbox $outbox): void
    {
        /** @var DelayedMessages $delays a bus without them refuses what is to leave later */
        $delays = $this->delays;
        foreach ($outbox->delayed() as [$message, $due]) {
            $delays->add($transaction, $message, $due);
        }
    }

    private function keep(HandlerOutbox $outbox): void
    {
        $outbox->close();
        foreach ($outbox->delayed() as [$message, $due]) {
            $this->delays?->store($message, $due);
        }
    }

    /** @param (\Closure(Transaction): void)|null $last joins the transaction when the handler is done */
    private function inTransaction(Handler $handler, object $message, Context $context, HandlerOutbox $outbox, ?InboxEntry $entry, ?\Closure $last): void
    {
        \assert($this->setup->database !== null);
        $transaction = HandlerTransaction::begin($this->setup->database, $handler->name);
        try {
            $entry?->open($transaction);
            $context->joins($transaction);
            $returned = CallScope::call($handler->invoke, $message, $context, $transaction);
            $handler->kind !== MessageKind::Event && $context->wantsReply() && $this->encodeReply($outbox, $context, $returned);
            $last === null || $last($transaction);
        } catch (\Throwable $thrown) {
            $transaction->abandon();
            throw $thrown;
        }
        $transaction->finish();
    }
}
