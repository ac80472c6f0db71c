<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * `array<string, T>` and `array<int, T>` as a JSON object.
 *
 * PHP turns keys such as "12" into ints on both sides; that is left to it.
 *
 * @internal
 */
final class Map implements Type
{
    public function __construct(
        public readonly Type $item,
        public readonly bool $intKeys,
        private readonly bool $takesLists,
    ) {}

    public function decode(mixed $value): mixed
    {
        if (!\is_array($value) || !$this->takesLists && $value !== [] && \array_is_list($value)) {
            throw MismatchException::of($this->name(), $value);
        }
        $key = 0;
        try {
            foreach ($value as $key => $item) {
                $value[$this->checked($key)] = $this->item->decode($item);
            }
        } catch (MismatchException $mismatch) {
            throw $mismatch->within(MismatchException::segment($key));
        }

        return $value;
    }

    public function encode(mixed $value): mixed
    {
        if (!\is_array($value)) {
            throw MismatchException::of($this->name(), $value);
        }
        $key = 0;
        // Not in place: an element may be a reference, and writing to it would change the message.
        $encoded = [];
        try {
            foreach ($value as $key => $item) {
                // json_encode() would leave it out, as PHP names properties that are not public.
                $isLost = \is_string($key) && \str_starts_with($key, "\0");
                $encoded[$isLost ? throw MismatchException::described('a key that does not begin with NUL', 'one that does') : $this->checked($key)] = $this->item->encode($item);
            }
        } catch (MismatchException $mismatch) {
            throw $mismatch->within(MismatchException::segment($key));
        }

        return (object) $encoded;
    }

    public function schema(): string|array
    {
        return ['map' => $this->item->schema()];
    }

    public function name(): string
    {
        return 'map of ' . $this->item->name();
    }

    private function checked(int|string $key): int|string
    {
        return !$this->intKeys || \is_int($key) ? $key : throw MismatchException::described('int keys', 'a string key');
    }
}
