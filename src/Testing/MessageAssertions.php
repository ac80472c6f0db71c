<?php

declare(strict_types=1);

namespace Weft\Testing;

use PHPUnit\Framework\Assert;

/**
 * Assertions about the messages of one class: `$bus->assertSent(Ship::class)->once()->with(orderId: '1')`. Without a condition,
 * `$bus->assertSent(Ship::class)` asserts that there is at least one.
 *
 * A failed assertion lists the messages that were sent instead.
 *
 * @template T of object
 */
final class MessageAssertions
{
    /** Whether a condition was stated, or the messages were taken: then the default, that there is one, does not apply. */
    private bool $isUsed = false;

    /**
     * @internal created by {@see TestBus}
     *
     * @param string  $what     the class, for failure messages
     * @param list<T> $messages in the order in which they were sent
     * @param string  $all      the other messages, for failure messages
     * @param string  $verb     completes "Expected Ship to be …"
     */
    public function __construct(
        private readonly string $what,
        private readonly array $messages,
        private readonly string $all,
        private readonly string $verb,
    ) {}

    /** `$bus->assertSent(Ship::class);` without a condition asserts that there is a message. */
    public function __destruct()
    {
        $this->isUsed || $this->first();
    }

    /** @return $this */
    public function once(): static
    {
        return $this->times(1);
    }

    /** @return $this */
    public function never(): static
    {
        return $this->times(0);
    }

    /**
     * @param int<0, max> $count
     * @return $this
     */
    public function times(int $count): static
    {
        $found = \count($this->messages);

        return $this->check($found === $count, "Expected {$this->what} to be {$this->verb} " . self::count($count) . ', but it was ' . self::count($found));
    }

    /**
     * At least one message has these property values, of any visibility. Further assertions apply to the matching messages.
     *
     * @param mixed ...$values by property name, compared with `==`; a closure receives the value and returns whether it matches
     * @return static<T>
     */
    public function with(mixed ...$values): static
    {
        $fitting = \array_values(\array_filter($this->messages, static fn(object $message): bool => self::matches($message, $values)));
        $this->check($fitting !== [], "No {$this->what} that was {$this->verb} has " . self::text($values));

        $further = new self($this->what, $fitting, $this->all, $this->verb);
        $further->isUsed = true;

        return $further;
    }

    /**
     * The first message.
     *
     * @return T
     */
    public function first(): object
    {
        $this->check($this->messages !== [], "Expected {$this->what} to be {$this->verb}, but it was not");

        return $this->messages[0];
    }

    /** @return list<T> which may be empty */
    public function all(): array
    {
        $this->isUsed = true;

        return $this->messages;
    }

    /** @param array<array-key, mixed> $values */
    private static function matches(object $message, array $values): bool
    {
        foreach ($values as $name => $expected) {
            $name = (string) $name;
            if (!\property_exists($message, $name)) {
                throw new \ValueError($message::class . " has no property \${$name}");
            }
            $value = (new \ReflectionProperty($message, $name))->getValue($message);
            if (!($expected instanceof \Closure ? $expected($value) : $value == $expected)) {
                return false;
            }
        }

        return true;
    }

    /** @return $this */
    private function check(bool $holds, string $message): static
    {
        $this->isUsed = true;
        Assert::assertTrue($holds, "{$message}. {$this->all}");

        return $this;
    }

    private static function count(int $count): string
    {
        return match ($count) {
            0 => 'never',
            1 => 'once',
            default => "{$count} times",
        };
    }

    /** @param array<array-key, mixed> $values */
    private static function text(array $values): string
    {
        $text = [];
        foreach ($values as $name => $value) {
            $text[] = "{$name} " . ($value instanceof \Closure ? 'that fits' : (string) \json_encode($value, \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES | \JSON_PARTIAL_OUTPUT_ON_ERROR));
        }

        return \implode(', ', $text);
    }
}
