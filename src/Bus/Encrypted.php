<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * A property of a message that travels encrypted: in queues, outbox, dead letters and everywhere else a body is kept, with the
 * current key of the {@see KeyRing} that {@see Bus::connect()} was given, by XChaCha20-Poly1305 (libsodium). Handlers see the
 * value; what they log or throw is theirs.
 *
 * The key's id travels with the value, so that older keys can be read as long as the ring has them. A value under a key it
 * does not have, or one that was changed, parks the message.
 */
#[\Attribute(\Attribute::TARGET_PROPERTY)]
final class Encrypted
{
    /** @param bool $acceptPlain whether values that are not encrypted are read too, while older senders have gone on */
    public function __construct(public readonly bool $acceptPlain = false) {}
}
