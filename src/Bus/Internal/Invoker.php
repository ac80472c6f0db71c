<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Log\LoggerInterface;
use Weft\Bus\Context;
use Weft\Bus\Progress;
use Weft\Bus\TransactionFinished;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Runtime\Local;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

/**
 * Calls one handler for one delivery, in its transaction if it takes one.
 *
 * @internal
 */
final class Invoker
{
    /**
     * @param Transport|null      $direct  where messages of handlers go at once; null keeps them until the handler is done
     * @param Local<Context|null> $current
     */
    public function __construct(
        private readonly Envelopes $envelopes,
        private readonly ?Transport $direct,
        private readonly ?Database $database,
        private readonly Local $current,
        private readonly Progress $progress,
        private readonly LoggerInterface $logger,
        private readonly string $queue,
    ) {}

    /**
     * @param TransactionalConsumer|null $enlist publishes and acknowledges in the handler's transaction
     * @return list<Outgoing> what the handler has sent and did not leave at once; nothing of it when the handler throws
     */
    public function invoke(Handler $handler, object $message, Delivery $delivery, ?TransactionalConsumer $enlist = null): array
    {
        $outbox = new Outbox($this->envelopes, $this->progress, $this->direct);
        $context = new Context($delivery, $outbox, $this->logger, $this->queue);
        $this->current->set($context);
        try {
            if ($handler->transactional) {
                $ack = $enlist === null ? null : static fn(Transaction $tx) => $enlist->enlist($tx, $delivery, $outbox->close());
                $this->inTransaction($handler, $message, $context, $ack);
            } else {
                ($handler->invoke)($message, $context, null);
            }
        } finally {
            $publish = $outbox->close();
        }

        return $publish;
    }

    /** @param (\Closure(Transaction): void)|null $last joins the transaction when the handler is done */
    private function inTransaction(Handler $handler, object $message, Context $context, ?\Closure $last): void
    {
        \assert($this->database !== null);
        $transaction = $this->database->begin();
        try {
            ($handler->invoke)($message, $context, $transaction);
            if (!$transaction->isOpen()) {
                throw new TransactionFinished("{$handler->name}() committed or rolled back the Transaction it was given; the bus does");
            }
            $last === null || $last($transaction);
        } catch (\Throwable $thrown) {
            $transaction->abandon();
            throw $thrown;
        }
        $transaction->commit();
    }
}
