<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

use Weft\Bus\KeyRing;

/**
 * A value that is encrypted by itself: `weft1:<key id>:<nonce and ciphertext in base 64>`. The name of its property is
 * authenticated with it.
 *
 * @internal
 */
final class Sealed implements Type
{
    private const FORMAT = 'weft1';

    public function __construct(
        private readonly Type $inner,
        private readonly string $property,
        private readonly KeyRing $keys,
        private readonly bool $acceptsPlain,
    ) {}

    public function encode(mixed $value): mixed
    {
        $plain = \json_encode($this->inner->encode($value), \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION);
        if ($plain === false) {
            throw Mismatch::described($this->inner->name(), 'what JSON cannot carry');
        }
        $nonce = \random_bytes(\SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_NPUBBYTES);
        $id = $this->keys->current;
        $sealed = \sodium_crypto_aead_xchacha20poly1305_ietf_encrypt($plain, $this->property, $nonce, (string) $this->keys->key($id));

        return self::FORMAT . ":{$id}:" . \base64_encode($nonce . $sealed);
    }

    public function decode(mixed $value): mixed
    {
        if (!\is_string($value) || !\str_starts_with($value, self::FORMAT . ':')) {
            return $this->acceptsPlain ? $this->inner->decode($value) : throw Mismatch::described($this->name(), 'one that is not encrypted');
        }
        [, $id, $sealed] = [...\explode(':', $value, 3), '', ''];
        $key = $this->keys->key($id) ?? throw Mismatch::described($this->name(), \preg_match('/^[\w.-]{1,64}$/D', $id) === 1 ? "one under the key \"{$id}\", which is not in the ring" : 'one without the id of a key');
        $bytes = (string) \base64_decode($sealed, true);
        $length = \SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_NPUBBYTES;
        $plain = \strlen($bytes) < $length + \SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_ABYTES
            ? false
            : \sodium_crypto_aead_xchacha20poly1305_ietf_decrypt(\substr($bytes, $length), $this->property, \substr($bytes, 0, $length), $key);
        if ($plain === false) {
            throw Mismatch::described($this->name(), "one that the key \"{$id}\" does not open");
        }

        return $this->inner->decode(\json_decode($plain, true));
    }

    public function schema(): string|array
    {
        return ['encrypted' => $this->inner->schema()];
    }

    public function name(): string
    {
        return "encrypted {$this->inner->name()}";
    }
}
