<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Encrypts a property of a message with XChaCha20-Poly1305 (libsodium) and the current key of the {@see KeyRing} passed to
 * {@see Bus::connect()}. The value is encrypted wherever the body is stored: in queues, the outbox and dead letters. Handlers receive
 * the decrypted value.
 *
 * The key id is stored with the value, so older keys can decrypt as long as the key ring has them. A value with an unknown key, or one
 * that was tampered with, dead-letters the message.
 */
#[\Attribute(\Attribute::TARGET_PROPERTY)]
final class Encrypted
{
    /** @param bool $acceptPlain whether unencrypted values are accepted too, for a migration of the senders */
    public function __construct(public readonly bool $acceptPlain = false) {}
}
