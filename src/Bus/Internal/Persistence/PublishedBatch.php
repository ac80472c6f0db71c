<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

/**
 * The result of {@see TablePublisher} for the first rows of its table.
 *
 * @internal
 */
final class PublishedBatch
{
    /**
     * @param list<string> $stuck ids of rows that are still there, because they have no queue or the broker refuses them
     * @param string|null  $last  id of the last row of the batch; null without rows
     */
    public function __construct(
        public readonly int $sent,
        public readonly array $stuck,
        public readonly ?string $last,
        public readonly bool $hasMore,
    ) {}
}
