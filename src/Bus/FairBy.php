<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Distributes handling fairly over the values of a property, such as tenants: a tenant with many messages does not delay one with few.
 * All classes with this attribute share the rotation; messages without a value form a group of their own.
 *
 * The rotation applies to the messages that the consumer has prefetched: the `prefetch` limits how far behind a flood a message can be
 * and still get its turn. With {@see OrderedBy} keys take turns: messages of a key stay in order.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class FairBy
{
    /** @param string $property a string, an int or a backed enum */
    public function __construct(public readonly string $property) {}
}
