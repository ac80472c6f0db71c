<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * `list<T>` as a JSON array.
 *
 * @internal
 */
final class Sequence implements Type
{
    public function __construct(public readonly Type $item) {}

    public function decode(mixed $value): mixed
    {
        if (!\is_array($value) || !\array_is_list($value)) {
            throw MismatchException::of($this->name(), $value);
        }
        $at = 0;
        try {
            foreach ($value as $at => $item) {
                $value[$at] = $this->item->decode($item);
            }
        } catch (MismatchException $mismatch) {
            throw $mismatch->within("[{$at}]");
        }

        return $value;
    }

    public function encode(mixed $value): mixed
    {
        if (!\is_array($value) || !\array_is_list($value)) {
            throw MismatchException::of($this->name(), $value);
        }
        $at = 0;
        // Not in place: an element may be a reference, and writing to it would change the message.
        $encoded = [];
        try {
            foreach ($value as $at => $item) {
                $encoded[] = $this->item->encode($item);
            }
        } catch (MismatchException $mismatch) {
            throw $mismatch->within("[{$at}]");
        }

        return $encoded;
    }

    public function schema(): string|array
    {
        return ['list' => $this->item->schema()];
    }

    public function name(): string
    {
        return 'list of ' . $this->item->name();
    }
}
