<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

use Weft\Bus\KeyRing;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Type;

/**
 * An encrypted value: `weft2:<key id>:<nonce and ciphertext in base 64>`. Type and id of the message and the name of the property are
 * authenticated with it, so that it cannot be moved to another one. The older format `weft1` authenticates only the property.
 *
 * @internal
 */
final class EncryptedValue implements Type
{
    private const FORMAT = 'weft2';
    private const PREVIOUS_FORMAT = 'weft1';

    public function __construct(
        private readonly Type $inner,
        private readonly string $property,
        private readonly KeyRing $keys,
        private readonly bool $acceptsPlain,
        private readonly EncryptionContext $binding,
    ) {}

    public function encode(mixed $value): mixed
    {
        $plain = \json_encode($this->inner->encode($value), \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION);
        if ($plain === false) {
            throw MismatchException::described($this->inner->name(), 'a value that JSON cannot represent');
        }
        $nonce = \random_bytes(\SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_NPUBBYTES);
        $id = $this->keys->current;
        $sealed = \sodium_crypto_aead_xchacha20poly1305_ietf_encrypt($plain, $this->bound(self::FORMAT), $nonce, (string) $this->keys->key($id));

        return self::FORMAT . ":{$id}:" . \base64_encode($nonce . $sealed);
    }

    public function decode(mixed $value): mixed
    {
        [$format, $id, $sealed] = [...\explode(':', \is_string($value) ? $value : '', 3), '', ''];
        if ($format !== self::FORMAT && $format !== self::PREVIOUS_FORMAT) {
            return $this->acceptsPlain ? $this->inner->decode($value) : throw MismatchException::described($this->name(), 'an unencrypted value');
        }
        if ($format === self::PREVIOUS_FORMAT && !$this->keys->acceptUnbound) {
            throw MismatchException::described($this->name(), 'a value of the format weft1, which is not bound to its message: new KeyRing(..., acceptUnbound: true) reads it');
        }
        $key = $this->keys->key($id) ?? throw MismatchException::described($this->name(), \preg_match('/^[\w.-]{1,64}$/D', $id) === 1 ? "a value encrypted with the key \"{$id}\", which is not in the key ring" : 'a value without a key id');
        $bytes = (string) \base64_decode($sealed, true);
        $length = \SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_NPUBBYTES;
        $plain = \strlen($bytes) < $length + \SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_ABYTES
            ? false
            : \sodium_crypto_aead_xchacha20poly1305_ietf_decrypt(\substr($bytes, $length), $this->bound($format), \substr($bytes, 0, $length), $key);
        if ($plain === false) {
            throw MismatchException::described($this->name(), "a value that the key \"{$id}\" cannot decrypt");
        }

        return $this->inner->decode(\json_decode($plain, true));
    }

    /** The associated data. */
    private function bound(string $format): string
    {
        return $format === self::PREVIOUS_FORMAT ? $this->property : \implode("\0", [$format, $this->binding->type, $this->binding->id, $this->property]);
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
