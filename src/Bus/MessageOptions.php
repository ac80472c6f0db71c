<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Which messages a bus knows and how their bodies travel; see {@see BusOptions}. */
final class MessageOptions
{
    /**
     * @param list<class-string> $classes message classes without a handler in this program. Their events are acknowledged instead of
     *                                    dead-lettered as unknown, replies of these classes are decoded, and properties that cannot be
     *                                    encoded are reported when the bus connects
     * @param ClaimCheck|null    $claims  stores large bodies outside the broker. Set it where bodies exceed about 64 KiB
     * @param KeyRing|null       $keys    encrypts properties marked {@see Encrypted}
     */
    public function __construct(
        public readonly array $classes = [],
        public readonly ?ClaimCheck $claims = null,
        public readonly ?KeyRing $keys = null,
    ) {}
}
