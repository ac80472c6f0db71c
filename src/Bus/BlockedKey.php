<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A key of ordered messages ({@see OrderedBy}) that is blocked by a failed message. */
final class BlockedKey
{
    /**
     * @param string $key       group and value, such as `account:4711`
     * @param string $messageId of the failed message
     * @param int    $waiting   number of messages behind it
     * @param bool   $released  whether the messages behind it are about to be handled, see {@see Queue::releaseKey()}
     */
    public function __construct(
        public readonly string $key,
        public readonly string $messageId,
        public readonly \DateTimeImmutable $since,
        public readonly int $waiting,
        public readonly bool $released,
    ) {}
}
