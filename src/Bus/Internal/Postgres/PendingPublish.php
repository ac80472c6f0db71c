<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Bus\Transport\Outgoing;

/**
 * Messages whose publisher waits for them.
 *
 * @internal
 */
final class PendingPublish
{
    public bool $done = false;
    public ?\Throwable $failure = null;

    /** One that must be routed and has no queue. */
    public ?Outgoing $lost = null;

    /** @param non-empty-list<Outgoing> $messages */
    public function __construct(public readonly array $messages) {}
}
