<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

use Weft\Bus\Encrypted;
use Weft\Bus\Expires;
use Weft\Bus\FairBy;
use Weft\Bus\Header;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\Internal\Sending\MessageHeaders;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\OrderedBy;
use Weft\Bus\Priority;

/**
 * Priority, expiry, order and fairness of a message class, as headers, so that a receiver need not decode the message to read them.
 *
 * @internal
 */
final class DeliveryPolicy
{
    /** Longest key that is stored unchanged, see {@see Identifier::fit()}. */
    private const KEY_BYTES = 150;

    /**
     * @param array<string, string>                  $fixed headers
     * @param array<string, \Closure(object): ?string> $keys  header and what makes it of a message
     * @param string                                 $orderPrefix of ordering keys
     */
    private function __construct(
        private readonly ?float $lifetime,
        private readonly array $fixed,
        private readonly array $keys,
        private readonly string $orderPrefix,
    ) {}

    /**
     * @param \ReflectionClass<object> $class
     * @return self|null null when it says nothing
     * @throws InvalidMessageClassError
     */
    public static function of(\ReflectionClass $class, string $type): ?self
    {
        $lifetime = self::attribute($class, Expires::class)?->after;
        $priority = self::attribute($class, Priority::class)?->level;
        $ordered = self::attribute($class, OrderedBy::class);
        $fair = self::attribute($class, FairBy::class);
        $group = $ordered?->group;
        if ($priority !== null && $group !== null) {
            // Brokers deliver the highest priority first, and the priorities of the other classes are not known here.
            throw InvalidMessageClassError::because($class->name, "#[Priority] would let its messages overtake others of the group \"{$group}\": a class with a priority has an #[OrderedBy] without a group");
        }
        $keys = [];
        $prefix = ($group ?? $type) . ':';
        if ($ordered !== null) {
            $keys[Header::ORDER_KEY] = self::key($class, $ordered->property, OrderedBy::class, $prefix);
        }
        if ($fair !== null) {
            $keys[Header::FAIR_KEY] = self::key($class, $fair->property, FairBy::class, '');
        }
        $fixed = $priority === null ? [] : [Header::PRIORITY => (string) $priority];

        return $lifetime === null && $fixed === [] && $keys === [] ? null : new self($lifetime, $fixed, $keys, $prefix);
    }

    /**
     * @param float|null $due when it leaves, as microtime(true) has it; null for now
     * @return array<string, string>
     */
    public function headers(object $message, ?float $due): array
    {
        $headers = $this->fixed;
        if ($this->lifetime !== null) {
            $headers += MessageHeaders::headers(null, $this->lifetime, $due, []);
        }
        foreach ($this->keys as $header => $key) {
            $value = $key($message);
            if ($value !== null) {
                $headers[$header] = $value;
            }
        }

        return $headers;
    }

    /** The header for an ordering key that the sender chose; null when the class is not ordered. */
    public function orderKey(string $key): ?string
    {
        return $this->isOrdered() ? Identifier::fit($this->orderPrefix . $key, self::KEY_BYTES) : null;
    }

    public function isOrdered(): bool
    {
        return isset($this->keys[Header::ORDER_KEY]);
    }

    /**
     * @template T of object
     *
     * @param \ReflectionClass<object> $class
     * @param class-string<T>          $attribute
     * @return T|null
     */
    private static function attribute(\ReflectionClass $class, string $attribute): ?object
    {
        return ($class->getAttributes($attribute)[0] ?? null)?->newInstance();
    }

    /**
     * @param \ReflectionClass<object> $class
     * @return \Closure(object): ?string
     */
    private static function key(\ReflectionClass $class, string $property, string $attribute, string $prefix): \Closure
    {
        $name = \substr((string) \strrchr($attribute, '\\'), 1);
        if (!$class->hasProperty($property)) {
            throw InvalidMessageClassError::because($class->name, "#[{$name}] names the property \${$property}, which it does not have");
        }
        if ($class->getProperty($property)->getAttributes(Encrypted::class) !== []) {
            throw InvalidMessageClassError::because($class->name, "#[{$name}] names the property \${$property}, which is encrypted; a key must not be encrypted");
        }
        $type = $class->getProperty($property)->getType();
        $fits = $type instanceof \ReflectionNamedType
            && (\in_array($type->getName(), ['string', 'int'], true) || \is_subclass_of($type->getName(), \BackedEnum::class));
        if (!$fits) {
            throw InvalidMessageClassError::because($class->name, "#[{$name}] names the property \${$property} of type " . (string) ($type ?? 'none') . '; a key is a string, an int or a backed enum');
        }

        $longest = self::KEY_BYTES;

        /** @var \Closure(object): ?string */
        return \Closure::bind(static function (object $message) use ($property, $prefix, $longest): ?string {
            $value = $message->$property;
            if ($value === null) {
                return null;
            }
            return Identifier::fit($prefix . ($value instanceof \BackedEnum ? $value->value : $value), $longest);
        }, null, $class->getProperty($property)->class);
    }
}
