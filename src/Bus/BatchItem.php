<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * One message of a batch, see {@see Batch}.
 *
 * @template T of object
 */
final class BatchItem
{
    private ?\Throwable $failure = null;

    /**
     * @internal made by the bus
     *
     * @param T       $message
     * @param Context $context of this message: what is sent through it leaves only if this item succeeds
     */
    public function __construct(
        public readonly object $message,
        public readonly Context $context,
    ) {}

    /**
     * Says that this item was not handled: it is retried or parked as if it alone had failed so. What the handler has done for
     * it in the transaction is the handler's to undo; done behind a savepoint ({@see \Weft\Sql\Transaction::transaction()})
     * it is undone by throwing there.
     */
    public function fail(\Throwable $why): void
    {
        $this->failure = $why;
    }

    /** Why it was not handled; null as long as nobody has said so. */
    public function failure(): ?\Throwable
    {
        return $this->failure;
    }
}
