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
     * @internal created by the bus
     *
     * @param T       $message
     * @param Context $context of this message: what is sent through it is published only if this item succeeds
     */
    public function __construct(
        public readonly object $message,
        public readonly Context $context,
    ) {}

    /**
     * Marks this item as failed: it is retried or dead-lettered as if it had failed alone. The handler must undo what it has done for the
     * item in the shared transaction. Inside a savepoint ({@see \Weft\Sql\Transaction::transaction()}) throwing undoes it.
     */
    public function fail(\Throwable $why): void
    {
        $this->failure = $why;
    }

    /** Why the item failed; null if it did not. */
    public function failure(): ?\Throwable
    {
        return $this->failure;
    }
}
