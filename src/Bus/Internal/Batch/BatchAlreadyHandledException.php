<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Batch;

/**
 * Some messages of a batch were handled before; the transaction of the batch was rolled back.
 *
 * @internal
 */
final class BatchAlreadyHandledException extends \Exception
{
    /** @param non-empty-array<int, bool> $items whether with the same body, by their place in the batch */
    public function __construct(public readonly array $items, \Throwable $previous)
    {
        parent::__construct($previous->getMessage(), previous: $previous);
    }
}
