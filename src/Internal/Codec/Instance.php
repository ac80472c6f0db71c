<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * An object of one class. Compiled on first use, so that a class may contain itself.
 *
 * @internal
 */
final class Instance implements Type
{
    private const MAX_DEPTH = 256;

    private static int $depth = 0;

    /** @var array<class-string, true> */
    private static array $describing = [];

    private ?ClassCodec $shape = null;

    /** @param class-string $class */
    public function __construct(
        public readonly string $class,
        private readonly Compiler $compiler,
        private readonly bool $takesLists,
    ) {}

    public function decode(mixed $value): mixed
    {
        if (!\is_array($value) || !$this->takesLists && $value !== [] && \array_is_list($value)) {
            throw MismatchException::of($this->name(), $value);
        }
        /** @var array<string, mixed> $value */

        return ($this->shape ?? $this->shape())->decode($value);
    }

    public function encode(mixed $value): mixed
    {
        // Exactly the class: properties of a subclass would be lost silently.
        if (!\is_object($value) || $value::class !== $this->class) {
            throw MismatchException::of($this->name(), $value);
        }
        if (self::$depth >= self::MAX_DEPTH) {
            throw MismatchException::described('objects nested at most ' . self::MAX_DEPTH . ' deep', 'more (a cycle?)');
        }
        self::$depth++;
        try {
            return ($this->shape ?? $this->shape())->encode($value);
        } finally {
            self::$depth--;
        }
    }

    public function schema(): string|array
    {
        if (isset(self::$describing[$this->class])) {
            // A class that contains itself.
            return ['object' => '…'];
        }
        self::$describing[$this->class] = true;
        try {
            return ['object' => $this->shape()->schema()];
        } finally {
            unset(self::$describing[$this->class]);
        }
    }

    public function shape(): ClassCodec
    {
        return $this->shape ??= $this->compiler->shape($this->class);
    }

    public function name(): string
    {
        return "object ({$this->class})";
    }
}
