<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * A value does not match its type. The path is built while the exception propagates, so that valid messages pay nothing.
 *
 * @internal
 */
final class MismatchException extends \Exception
{
    private string $path = '';

    private function __construct(
        public readonly string $problem,
        public readonly string $expected,
        public readonly string $found,
    ) {
        parent::__construct($problem);
    }

    public static function of(string $expected, mixed $found): self
    {
        return self::described($expected, self::typeOf($found));
    }

    public static function described(string $expected, string $found): self
    {
        return new self("expected {$expected}, found {$found}", $expected, $found);
    }

    public function within(string $segment): self
    {
        $this->path = $segment . $this->path;

        return $this;
    }

    /** JSON path of the offending value; the middle of a path over 200 bytes is omitted. */
    public function path(): string
    {
        return \strlen($this->path) <= 200
            ? '$' . $this->path
            : '$' . \mb_strcut($this->path, 0, 99) . '…' . \mb_strcut($this->path, \strlen($this->path) - 99);
    }

    /** The path segment of a list index or map key; keys of maps come from the payload and are not shown. */
    public static function segment(int|string $key): string
    {
        return \is_int($key) ? "[{$key}]" : '[*]';
    }

    public static function typeOf(mixed $value): string
    {
        return match (true) {
            $value === null => 'null',
            \is_bool($value) => 'bool',
            \is_int($value) => 'int',
            \is_float($value) => \is_finite($value) && \abs($value) < 9.2e18 ? 'float' : 'a number out of the range of int64',
            \is_string($value) => 'string',
            \is_array($value) => \array_is_list($value) && $value !== [] ? 'list' : ($value === [] ? 'empty list or object' : 'object'),
            default => \get_debug_type($value),
        };
    }
}
