<?php

declare(strict_types=1);

namespace Weft\Bridge\Internal;

use Weft\Internal\Boolean;
use Weft\Pool\PoolOptions;
use Weft\UsageError;

/**
 * Reads the configuration of a framework, where values that come from the environment are strings.
 *
 * @internal
 */
final class Setting
{
    private const UNITS = ['' => 1, 'K' => 1024, 'M' => 1024 ** 2, 'G' => 1024 ** 3];

    /** The options of a pool that a configuration can say, and those that are objects. */
    private const POOL = ['size', 'sizeTotal', 'minimumIdle', 'name'];
    private const POOL_OBJECTS = ['timeouts', 'lifetime', 'validation', 'creation', 'leases'];

    /** An empty variable of the environment is one that is not set. */
    public static function given(mixed $value): mixed
    {
        return $value === '' ? null : $value;
    }

    /**
     * @param string $name of the setting, as its owner knows it
     *
     * @return ($least is positive-int ? positive-int : int)
     *
     * @throws UsageError
     */
    public static function integer(string $name, mixed $value, int $least, int $most = \PHP_INT_MAX): int
    {
        $number = \is_int($value) || \is_string($value) ? \filter_var($value, \FILTER_VALIDATE_INT, ['options' => ['min_range' => $least, 'max_range' => $most]]) : false;

        return $number === false ? throw self::refusal($name, $value, "an integer of at least $least" . ($most === \PHP_INT_MAX ? '' : " and at most $most")) : $number;
    }

    /** @throws UsageError */
    public static function seconds(string $name, mixed $value, float $most = \INF): float
    {
        $isNumber = \is_int($value) || \is_float($value) || \is_string($value) && \is_numeric($value);

        return $isNumber && (float) $value >= 0.0 && (float) $value <= $most
            ? (float) $value
            : throw self::refusal($name, $value, 'a number of seconds, at least 0' . ($most === \INF ? '' : " and at most $most"));
    }

    /** @throws UsageError */
    public static function bytes(string $name, mixed $value): int
    {
        if (!\is_int($value) && !\is_string($value) || \preg_match('/^(\d{1,12})([KMG]?)$/iD', (string) $value, $parts) !== 1) {
            throw self::refusal($name, $value, 'a number of bytes, optionally with K, M or G, such as 256M');
        }
        $bytes = (int) $parts[1] * self::UNITS[\strtoupper($parts[2])];

        return \is_int($bytes) ? $bytes : throw self::refusal($name, $value, 'at most ' . \PHP_INT_MAX . ' bytes');
    }

    /** @throws UsageError */
    public static function boolean(string $name, mixed $value): bool
    {
        return Boolean::parse($value) ?? throw self::refusal($name, $value, Boolean::WORDS);
    }

    /**
     * @param string $name of the setting, such as `"pool" of the connection`
     * @param array<string, string> $variables of the environment, by the option that has its value
     *
     * @throws UsageError
     */
    public static function pool(string $name, mixed $value, array $variables = []): PoolOptions
    {
        if ($value instanceof PoolOptions) {
            return $value;
        }
        if (!\is_array($value)) {
            throw self::refusal($name, $value, 'an array, such as ["size" => 20], or an object of ' . PoolOptions::class);
        }
        $options = [];
        foreach ($value as $option => $given) {
            $isObject = \in_array($option, self::POOL_OBJECTS, true);
            if (!$isObject && !\in_array($option, self::POOL, true)) {
                throw new UsageError("$name has the option \"$option\", and no pool has that: there are " . \implode(', ', self::POOL));
            }
            if (self::given($given) === null) {
                continue;
            }
            $title = "\"$option\" in $name" . (isset($variables[$option]) ? " ({$variables[$option]})" : '');
            $options[(string) $option] = match (true) {
                $isObject => $given,
                $option === 'name' => \is_string($given) ? $given : throw self::refusal($title, $given, 'a string'),
                default => self::integer($title, $given, $option === 'minimumIdle' ? 0 : 1),
            };
        }
        try {
            return new PoolOptions(...$options);
        } catch (\TypeError | \ValueError $refused) {
            throw new UsageError("$name: {$refused->getMessage()}", previous: $refused);
        }
    }

    private static function refusal(string $name, mixed $value, string $wanted): UsageError
    {
        $given = \is_string($value) ? "\"$value\"" : (\is_scalar($value) ? \var_export($value, true) : \get_debug_type($value));

        return new UsageError("$name is $given: it must be $wanted");
    }
}
