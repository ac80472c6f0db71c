<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Database;

/**
 * The form in which a row is returned: one of PDO's fetch modes with its flags and arguments, and the errors that PDO has for them.
 *
 * PHP 8.6 has other values for the flags (before, the bits of FETCH_UNIQUE contain those of FETCH_GROUP) and more errors.
 *
 * @internal for {@see Statement}
 */
final class FetchMode
{
    private const FLAGS = \PDO::FETCH_UNIQUE | \PDO::FETCH_GROUP | \PDO::FETCH_CLASSTYPE | \PDO::FETCH_PROPS_LATE;

    private const KINDS = [
        \PDO::FETCH_LAZY, \PDO::FETCH_ASSOC, \PDO::FETCH_NUM, \PDO::FETCH_BOTH, \PDO::FETCH_OBJ, \PDO::FETCH_BOUND, \PDO::FETCH_COLUMN, \PDO::FETCH_CLASS,
        \PDO::FETCH_INTO, \PDO::FETCH_FUNC, \PDO::FETCH_NAMED, \PDO::FETCH_KEY_PAIR,
    ];

    /**
     * @param int $kind one of {@see KINDS}
     * @param list<mixed> $arguments of the kind: a column, a class and the arguments of its constructor, an object, a function
     */
    private function __construct(public readonly int $kind, private readonly int $flags, private readonly array $arguments)
    {
    }

    /** Of {@see \PDO::ATTR_DEFAULT_FETCH_MODE}. */
    public static function ofAttribute(mixed $mode): self
    {
        return self::parse('PDO::setAttribute', \is_int($mode) ? $mode : \PDO::FETCH_BOTH, \PDO::FETCH_BOTH, []);
    }

    /**
     * Of {@see \PDOStatement::setFetchMode()}.
     *
     * @param array<array-key, mixed> $arguments
     */
    public static function ofStatement(int $mode, array $arguments): self
    {
        $method = 'PDOStatement::setFetchMode';
        $arguments = \array_values($arguments);
        $parsed = self::parse($method, $mode, \PDO::FETCH_BOTH, $arguments);
        $isEnough = match ($parsed->kind) {
            \PDO::FETCH_COLUMN, \PDO::FETCH_INTO => \count($arguments) === 1,
            \PDO::FETCH_CLASS => $parsed->has(\PDO::FETCH_CLASSTYPE) ? $arguments === [] : \count($arguments) >= 1,
            default => true,
        };
        if (!$isEnough) {
            throw new \ArgumentCountError("$method() was called with " . (1 + \count($arguments)) . ' arguments, which is not what the fetch mode needs');
        }
        $parsed->kind === \PDO::FETCH_FUNC && throw self::onlyForAll();

        return $parsed;
    }

    /** Of {@see \PDOStatement::fetch()}, with what the statement's own mode has of it. */
    public static function ofOne(int $mode, self $own): self
    {
        $parsed = self::parse('PDOStatement::fetch', $mode, $own->kind, []);
        $parsed->kind === \PDO::FETCH_FUNC && throw self::onlyForAll();
        if ($parsed->kind === $own->kind) {
            return new self($parsed->kind, $parsed->flags | $own->flags, $own->arguments);
        }
        $parsed->kind === \PDO::FETCH_CLASS && !$parsed->has(\PDO::FETCH_CLASSTYPE) && throw self::failure('No fetch class specified');

        return $parsed;
    }

    /**
     * Of {@see \PDOStatement::fetchAll()}.
     *
     * @param array<array-key, mixed> $arguments
     */
    public static function ofAll(int $mode, array $arguments, self $own): self
    {
        $method = 'PDOStatement::fetchAll';
        $parsed = self::parse($method, $mode, $own->kind, \array_values($arguments));
        if ($parsed->kind === \PDO::FETCH_FUNC && \count($arguments) !== 1) {
            throw new \ArgumentCountError("$method() expects exactly 2 arguments for PDO::FETCH_FUNC, " . (1 + \count($arguments)) . ' given');
        }
        if ($parsed->kind === \PDO::FETCH_INTO && \PHP_VERSION_ID >= 80600) {
            throw new \ValueError("$method(): Argument #1 (\$mode) PDO::FETCH_INTO cannot be used with $method()");
        }
        if ($parsed->kind === \PDO::FETCH_INTO && $arguments !== []) {
            throw new \ArgumentCountError("$method() expects exactly 1 argument for the fetch mode provided, " . (1 + \count($arguments)) . ' given');
        }

        return $parsed->kind === \PDO::FETCH_INTO && $own->kind === \PDO::FETCH_INTO ? new self($parsed->kind, $parsed->flags, $own->arguments) : $parsed;
    }

    /** Whether it is the same for one row and for all, without an argument: {@see Statement} has a shorter way for those. */
    public function isPlain(): bool
    {
        return $this->flags === 0 && \in_array($this->kind, [\PDO::FETCH_OBJ, \PDO::FETCH_ASSOC, \PDO::FETCH_NUM], true);
    }

    /**
     * @param list<string> $columns
     * @param list<mixed> $row
     */
    public function one(array $columns, array $row): mixed
    {
        return $this->shape($columns, $row, 0);
    }

    /**
     * @param list<string> $columns
     * @param iterable<list<mixed>> $rows
     *
     * @return array<array-key, mixed>
     */
    public function all(array $columns, iterable $rows): array
    {
        $this->kind === \PDO::FETCH_LAZY && throw new \ValueError('PDOStatement::fetchAll(): Argument #1 ($mode) cannot be PDO::FETCH_LAZY in PDOStatement::fetchAll()');
        $all = [];
        foreach ($rows as $row) {
            if ($this->kind === \PDO::FETCH_KEY_PAIR) {
                [$key, $value] = self::pair($row);
                $all[$key] = $value;
            } elseif ($this->has(\PDO::FETCH_UNIQUE)) {
                [$key, $value] = $this->grouped($columns, $row);
                $all[$key] = $value;
            } elseif ($this->has(\PDO::FETCH_GROUP)) {
                [$key, $value] = $this->grouped($columns, $row);
                $all[$key][] = $value;
            } else {
                $all[] = $this->shape($columns, $row, 0);
            }
        }

        return $all;
    }

    /** @param list<mixed> $arguments */
    private static function parse(string $method, int $mode, int $default, array $arguments): self
    {
        $flags = $mode & self::FLAGS;
        $kind = $mode & ~self::FLAGS;
        $kind = $kind === \PDO::FETCH_DEFAULT ? $default : $kind;
        if (!\in_array($kind, self::KINDS, true)) {
            throw new \ValueError("$method(): Argument #1 (\$mode) must be a bitmask of PDO::FETCH_* constants that Weft knows, $mode given");
        }
        $parsed = new self($kind, $flags, $arguments);
        if ($parsed->has(\PDO::FETCH_CLASSTYPE) && $kind !== \PDO::FETCH_CLASS) {
            throw new \ValueError("$method(): Argument #1 (\$mode) must use PDO::FETCH_CLASSTYPE with PDO::FETCH_CLASS");
        }
        if (\PHP_VERSION_ID >= 80600 && $parsed->has(\PDO::FETCH_PROPS_LATE) && $kind !== \PDO::FETCH_CLASS) {
            throw new \ValueError("$method(): Argument #1 (\$mode) must use PDO::FETCH_PROPS_LATE with PDO::FETCH_CLASS");
        }
        $parsed->check($method);

        return $parsed;
    }

    private function check(string $method): void
    {
        $first = $this->arguments[0] ?? null;
        [$most, $wanted] = match ($this->kind) {
            \PDO::FETCH_COLUMN => [1, \is_int($first) ? null : 'of type int'],
            \PDO::FETCH_CLASS => [2, \is_string($first) && \class_exists($first) ? null : 'a valid class'],
            \PDO::FETCH_INTO => [1, \is_object($first) ? null : 'of type object'],
            \PDO::FETCH_FUNC => [1, \is_callable($first) ? null : 'a valid callback'],
            default => [0, null],
        };
        if (\count($this->arguments) > $most) {
            throw new \ArgumentCountError("$method() expects at most " . (1 + $most) . ' arguments for the fetch mode provided, ' . (1 + \count($this->arguments)) . ' given');
        }
        if ($this->arguments !== [] && $first !== null && $wanted !== null) {
            throw new \TypeError("$method(): Argument #2 must be $wanted, " . (\is_string($first) ? "\"$first\"" : \get_debug_type($first)) . ' given');
        }
        if (\is_int($first) && $first < 0) {
            throw new \ValueError("$method(): Argument #2 must be greater than or equal to 0, $first given");
        }
        if (!\is_array($this->arguments[1] ?? [])) {
            throw new \TypeError("$method(): Argument #3 must be of type ?array, " . \get_debug_type($this->arguments[1]) . ' given');
        }
    }

    private function has(int $flag): bool
    {
        return ($this->flags & $flag) === $flag;
    }

    /**
     * @param list<string> $columns
     * @param list<mixed> $row
     *
     * @return array{int|string, mixed}
     */
    private function grouped(array $columns, array $row): array
    {
        if ($this->kind === \PDO::FETCH_COLUMN && \is_int($this->arguments[0] ?? null)) {
            // PDO's rule for a column that is given: it is the key of a group, and the value of a key that is unique.
            $column = self::column($row, $this->arguments[0]);

            return $this->has(\PDO::FETCH_UNIQUE) ? [self::key($row[0]), $column] : [self::key($column), $row[0]];
        }
        if ($this->has(\PDO::FETCH_CLASSTYPE)) {
            $class = \array_shift($row);

            return [self::key(\array_shift($row)), $this->object(\array_slice($columns, 2), $row, $class)];
        }

        return [self::key(\array_shift($row)), $this->shape(\array_slice($columns, 1), $row, 1)];
    }

    /**
     * @param list<string> $columns
     * @param list<mixed> $row
     * @param int $skipped columns before the first of the row
     */
    private function shape(array $columns, array $row, int $skipped): mixed
    {
        return match ($this->kind) {
            \PDO::FETCH_ASSOC => \array_combine($columns, $row),
            \PDO::FETCH_NUM => $row,
            \PDO::FETCH_LAZY, \PDO::FETCH_OBJ => (object) \array_combine($columns, $row),
            \PDO::FETCH_COLUMN => self::column($row, (int) ($this->arguments[0] ?? 0)),
            \PDO::FETCH_FUNC => $this->arguments[0](...$row),
            \PDO::FETCH_CLASS => $this->has(\PDO::FETCH_CLASSTYPE)
                ? $this->object(\array_slice($columns, 1), \array_slice($row, 1), $row[0] ?? null)
                : $this->object($columns, $row, $this->arguments[0] ?? null),
            \PDO::FETCH_INTO => self::fill($this->arguments[0] ?? throw self::failure('No fetch-into object specified'), $columns, $row),
            \PDO::FETCH_BOUND => true,
            \PDO::FETCH_NAMED => self::named($columns, $row),
            \PDO::FETCH_KEY_PAIR => (static fn(array $pair): array => [$pair[0] => $pair[1]])(self::pair($row)),
            default => self::both($columns, $row, $skipped),
        };
    }

    /** @param list<mixed> $row */
    private static function column(array $row, int $column): mixed
    {
        return \array_key_exists($column, $row) ? $row[$column] : throw new \ValueError("Invalid column index: there is no column $column");
    }

    /**
     * @param list<mixed> $row
     *
     * @return array{int|string, mixed}
     */
    private static function pair(array $row): array
    {
        return \count($row) === 2 ? [self::key($row[0]), $row[1]] : throw self::failure('PDO::FETCH_KEY_PAIR fetch mode requires the result set to contain exactly 2 columns, it has ' . \count($row));
    }

    /**
     * @param list<string> $columns
     * @param list<mixed> $row
     */
    private function object(array $columns, array $row, mixed $name): object
    {
        $class = new \ReflectionClass(\is_string($name) && \class_exists($name) ? $name : \stdClass::class);
        /** @var array<array-key, mixed> $given */
        $given = $this->arguments[1] ?? [];
        if ($class->getConstructor() === null) {
            if ($given === []) {
                return self::fill($class->newInstance(), $columns, $row);
            }
            $message = "The class {$class->getName()} has no constructor for the arguments of the fetch mode";

            throw \PHP_VERSION_ID >= 80600 ? new \ValueError($message) : new \Error($message);
        }
        if ($this->has(\PDO::FETCH_PROPS_LATE)) {
            return self::fill($class->newInstanceArgs($given), $columns, $row);
        }
        // PDO sets the properties first.
        $object = self::fill($class->newInstanceWithoutConstructor(), $columns, $row);
        $class->getConstructor()->invokeArgs($object, $given);

        return $object;
    }

    /**
     * @param list<string> $columns
     * @param list<mixed> $row
     */
    private static function fill(object $object, array $columns, array $row): object
    {
        // PDO sets private and protected properties too.
        (function () use ($columns, $row): void {
            foreach ($columns as $index => $column) {
                $this->{$column} = $row[$index];
            }
        })->bindTo($object, (new \ReflectionObject($object))->isInternal() ? null : $object::class)();

        return $object;
    }

    /**
     * @param list<string> $columns
     * @param list<mixed> $row
     *
     * @return array<int|string, mixed> in the order of PDO
     */
    private static function both(array $columns, array $row, int $skipped): array
    {
        $both = [];
        foreach ($columns as $index => $column) {
            $both[$column] = $row[$index];
            $both[$index + $skipped] = $row[$index];
        }

        return $both;
    }

    /**
     * @param list<string> $columns
     * @param list<mixed> $row
     *
     * @return array<string, mixed> columns with the same name are a list
     */
    private static function named(array $columns, array $row): array
    {
        $named = [];
        foreach (\array_count_values($columns) as $column => $count) {
            $values = \array_values(\array_intersect_key($row, \array_flip(\array_keys($columns, (string) $column, true))));
            $named[$column] = $count === 1 ? $values[0] : $values;
        }

        return $named;
    }

    private static function key(mixed $value): int|string
    {
        return \is_int($value) ? $value : (string) $value;
    }

    private static function onlyForAll(): \ValueError
    {
        return new \ValueError('Can only use PDO::FETCH_FUNC in PDOStatement::fetchAll()');
    }

    private static function failure(string $message): DatabaseException
    {
        return new DatabaseException("SQLSTATE[HY000]: General error: $message", 'HY000', null);
    }
}
