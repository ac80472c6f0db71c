<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/** Marks a class whose state is what its recorded events have made of it. Such a class uses the trait {@see RecordsEvents}. */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class AggregateRoot
{
    /**
     * @param string   $name          of its streams, 1 to 60 bytes without a colon; events are found by it for ever
     * @param string   $id            the property that holds its id, 1 to 139 bytes, and never changes
     * @param int|null $snapshotEvery after how many events its properties are stored, so that loading it reads fewer; null never
     * @param int      $version       of the properties, counts up from 1; snapshots of other versions are not used
     */
    public function __construct(
        public readonly string $name,
        public readonly string $id = 'id',
        public readonly ?int $snapshotEvery = null,
        public readonly int $version = 1,
    ) {
        if ($name === '' || \strlen($name) > 60 || \str_contains($name, ':')) {
            throw new \ValueError("The name of an aggregate must have 1 to 60 bytes and no colon, got \"{$name}\"");
        }
        if (($snapshotEvery ?? 1) < 1 || $version < 1) {
            throw new \ValueError("snapshotEvery and version must be at least 1, got {$snapshotEvery} and {$version}");
        }
    }
}
