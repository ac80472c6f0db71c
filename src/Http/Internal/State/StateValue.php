<?php

declare(strict_types=1);

namespace Weft\Http\Internal\State;

/**
 * A value without its contents, which may be secret.
 *
 * @internal
 */
final class StateValue
{
    /** @param string $kind for messages: `string of 12 bytes`, `array of 3 values`, a class */
    public function __construct(public readonly string $kind, private readonly string $fingerprint) {}

    public function equals(self $other): bool
    {
        return $this->fingerprint === $other->fingerprint;
    }
}
