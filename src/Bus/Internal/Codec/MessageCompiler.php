<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

use Weft\Bus\Encrypted;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\KeyRing;
use Weft\Internal\AttributeArea;
use Weft\Internal\AttributeCheck;
use Weft\Internal\Codec\ClassCodec;
use Weft\Internal\Codec\Compiler;
use Weft\Internal\Codec\PropertyRules;
use Weft\Internal\Codec\Type;
use Weft\Internal\Codec\UnsupportedClassException;
use Weft\Internal\Codec\UnsupportedTypeException;

/**
 * Compiles the codecs of message classes, with encrypted properties.
 *
 * @internal
 */
final class MessageCompiler implements PropertyRules
{
    public readonly EncryptionContext $binding;
    private readonly Compiler $compiler;

    /**
     * @param string $withoutKeys        why an encrypted property is refused without a key ring
     * @param bool   $keepsUninitialized whether objects may have properties without a value
     */
    public function __construct(
        private readonly ?KeyRing $keys = null,
        private readonly string $withoutKeys = 'is #[Encrypted], which only properties of messages of the bus can be',
        bool $keepsUninitialized = false,
    ) {
        $this->binding = new EncryptionContext();
        $this->compiler = new Compiler($this, keepsUninitialized: $keepsUninitialized);
    }

    /** @param KeyRing|null $keys of the bus */
    public static function ofBus(?KeyRing $keys): self
    {
        return new self($keys, 'is #[Encrypted] and needs a key ring: pass a KeyRing to Bus::connect()');
    }

    /**
     * @param class-string $class
     * @param string $role what the class is for, for errors
     * @throws InvalidMessageClassError
     */
    public function shape(string $class, string $role = 'a message'): ClassCodec
    {
        try {
            return $this->compiler->shape($class);
        } catch (UnsupportedClassException $unsupported) {
            throw InvalidMessageClassError::because($unsupported->class, $unsupported->reason, $role);
        }
    }

    public function problem(\ReflectionClass|\ReflectionProperty $place): ?string
    {
        return AttributeCheck::on($place, AttributeArea::Bus);
    }

    public function type(\ReflectionProperty $property, Type $type): Type
    {
        $encrypted = ($property->getAttributes(Encrypted::class)[0] ?? null)?->newInstance();
        if ($encrypted === null) {
            return $type;
        }
        $keys = $this->keys ?? throw new UnsupportedTypeException($this->withoutKeys);

        return new EncryptedValue($type, $property->name, $keys, $encrypted->acceptPlain, $this->binding);
    }
}
