<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Handles messages with the same value of a property one after the other, in the order of their queue. Messages with other values run
 * concurrently. Several classes with one `$group` share their order.
 *
 * When a message fails, its key is blocked: later messages of the key wait in the database until the failed one has succeeded, by a retry
 * or by `weft dead:retry`, or until the key is released with `weft keys:release`. Then they are handled in order. Ordering needs a
 * database. Only one process at a time consumes such a queue; the others are on standby.
 *
 * {@see Priority} and {@see FairBy} decide which key is next and change the order of no key.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class OrderedBy
{
    /**
     * @param string      $property a string, an int or a backed enum; a message with null is not ordered
     * @param string|null $group    prefix of the keys; default: the message type. Not for a class with {@see Priority}: it would overtake the
     *                              others of the group
     */
    public function __construct(
        public readonly string $property,
        public readonly ?string $group = null,
    ) {}
}
