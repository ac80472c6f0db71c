<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Keys for {@see Encrypted}, by id. One key encrypts, all keys decrypt.
 *
 * To rotate a key add the new one to the key rings of all receivers, make it the current key of the senders, and remove the old key when no
 * message with it is left, dead letters included.
 */
final class KeyRing
{
    /**
     * @param string                $current id of the key that encrypts
     * @param array<string, string> $keys    32 bytes each, by ids of letters, digits, `-`, `_` and `.`, at most 64 bytes
     * @param bool                  $acceptUnbound whether values of the format `weft1` are accepted, which are not bound to their message and
     *                                       could be moved to another one. Set it while messages of the older format are in queues or dead letters
     */
    public function __construct(
        public readonly string $current,
        #[\SensitiveParameter]
        private readonly array $keys,
        public readonly bool $acceptUnbound = false,
    ) {
        if (!\extension_loaded('sodium')) {
            throw new \Error('A KeyRing needs the extension sodium, which is not loaded');
        }
        foreach ($keys as $id => $key) {
            if (\preg_match('/^[\w.-]{1,64}$/D', (string) $id) !== 1) {
                throw new \ValueError("The id of a key must have 1 to 64 letters, digits, -, _ and ., got \"{$id}\"");
            }
            if (!\is_string($key) || \strlen($key) !== \SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_KEYBYTES) {
                throw new \ValueError("The key \"{$id}\" must be a string of 32 bytes");
            }
        }
        if (!isset($keys[$current])) {
            throw new \ValueError("The current key \"{$current}\" is not in the ring");
        }
    }

    /** Generates a key. */
    public static function generate(): string
    {
        return \sodium_crypto_aead_xchacha20poly1305_ietf_keygen();
    }

    /** @internal */
    public function key(string $id): ?string
    {
        return $this->keys[$id] ?? null;
    }

    /** @return array<string, mixed> the ids only, so that a dump does not reveal keys */
    public function __debugInfo(): array
    {
        return ['current' => $this->current, 'keys' => \array_keys($this->keys)];
    }

    /** @return array<string, mixed> */
    public function __serialize(): array
    {
        throw new \Error('A key ring cannot be serialised');
    }
}
