<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

/** An envelope of Messenger as its serializer has encoded it; each queue has a command of its own, see {@see QueueType}. */
abstract class Packed
{
    /** @param array<string, string> $headers */
    final public function __construct(public readonly string $body, public readonly array $headers)
    {
    }
}
