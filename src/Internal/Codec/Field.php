<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * One property of a message class.
 *
 * @internal
 */
final class Field
{
    /**
     * @param bool          $optional whether the field may be missing
     * @param \Closure|null $default  makes the value of a missing field; null leaves what the class itself declares
     */
    public function __construct(
        public readonly string $name,
        public readonly Type $type,
        public readonly bool $optional,
        public readonly ?\Closure $default,
    ) {}

    public function isCheckedByEngine(): bool
    {
        return $this->type instanceof Scalar && $this->type->isCheckedByEngine() && !$this->optional;
    }
}
