<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Messages of this class with the same value in a property are handled one after the other, in the order of their queue;
 * those of other values beside them. Several classes with one `$group` share their order.
 *
 * When one fails, its key is blocked: until the failed message has succeeded (its retry, or its dead letter given
 * back by `weft dead:retry`) or the key is released (`weft keys:release`) later messages of the key wait in the database, and
 * then they are handled in order. Needs a database. Of the processes that consume such a queue one works and the others stand by.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class OrderedBy
{
    /**
     * @param string      $property a string, an int or a backed enum; null in a message means that it is in no order
     * @param string|null $group    what the values are names of; by default the message type
     */
    public function __construct(
        public readonly string $property,
        public readonly ?string $group = null,
    ) {}
}
