<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Internal\Codec\MessageClass;

/**
 * One compiled handler.
 *
 * @internal
 */
final class Handler
{
    /**
     * @param string                                                                $name          `Class::method`
     * @param bool                                                                  $transactional whether it takes a Transaction
     * @param list<\Weft\Bus\Retry>                                                 $retries       the first that fits an exception decides
     * @param \Closure(object, \Weft\Bus\Context, ?\Weft\Sql\Transaction): mixed $invoke
     */
    public function __construct(
        public readonly string $name,
        public readonly Kind $kind,
        public readonly MessageClass $message,
        public readonly bool $transactional,
        public readonly \Closure $invoke,
        public readonly array $retries = [],
    ) {}
}
