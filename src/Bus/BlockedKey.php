<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A key of messages that are in order ({@see OrderedBy}), one of which has failed. */
final class BlockedKey
{
    /**
     * @param string $key       group and value, such as `account:4711`
     * @param string $messageId of the message that has failed
     * @param int    $waiting   messages that wait behind it
     * @param bool   $released  whether they are about to be handled, see {@see Bus::releaseKey()}
     */
    public function __construct(
        public readonly string $key,
        public readonly string $messageId,
        public readonly \DateTimeImmutable $since,
        public readonly int $waiting,
        public readonly bool $released,
    ) {}
}
