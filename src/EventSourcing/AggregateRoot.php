<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Internal\Identifier;

/** Marks an event-sourced aggregate: its state is the result of its events. The class uses the trait {@see RecordsEvents}. */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class AggregateRoot
{
    /**
     * @param string   $name          prefix of its streams, 1 to 60 bytes of UTF-8 without NUL and colon; must never change
     * @param string   $id            the property with its id, 1 to 139 bytes of UTF-8 without NUL, which must never change
     * @param int|null $snapshotEvery number of events between snapshots of its properties, at least 1; null for none
     * @param int      $version       version of the properties, at least 1; snapshots of other versions are ignored, and replaced by the next one
     */
    public function __construct(
        public readonly string $name,
        public readonly string $id = 'id',
        public readonly ?int $snapshotEvery = null,
        public readonly int $version = 1,
    ) {
        Identifier::check('The name of an aggregate', $name, 60);
        if (\str_contains($name, ':')) {
            throw new \ValueError("The name of an aggregate must have no colon, got \"{$name}\"");
        }
        if (($snapshotEvery ?? 1) < 1 || $version < 1) {
            throw new \ValueError("snapshotEvery and version must be at least 1, got {$snapshotEvery} and {$version}");
        }
    }
}
