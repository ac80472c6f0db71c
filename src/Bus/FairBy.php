<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Messages are started in turns, one of each value of a property after the other: a tenant with many messages does not keep one
 * with few waiting. Messages of all classes with this attribute take turns together; those without one are a tenant of their own.
 *
 * The turns are taken among the messages a consumer has taken from its queue: `prefetch` says how far behind a flood a message
 * can be and still have its turn at once.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class FairBy
{
    /** @param string $property a string, an int or a backed enum */
    public function __construct(public readonly string $property) {}
}
