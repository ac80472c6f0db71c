<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Database;

use Weft\Sql\Bytes;
use Weft\Sql\Driver;

/** A {@see \PDOStatement} of {@see Pdo}: a text, its parameters, and after `execute()` all rows of its result. */
final class Statement extends \PDOStatement
{
    /** @var array<int|string, mixed> values as {@see \Weft\Sql\Connection::execute()} takes them; positions are counted from 0 */
    private array $bound = [];

    /** @var array<int|string, array{mixed, int}> variables that are read when it is executed */
    private array $variables = [];

    /** @var array<int|string, array{mixed, int}> variables that receive columns, by number from 1 or name */
    private array $columnVariables = [];

    /** @var list<string> */
    private array $columns = [];

    /** @var list<list<mixed>> */
    private array $rows = [];

    private int $next = 0;

    private int $affected = 0;

    private FetchMode $mode;

    /**
     * @internal made by {@see Pdo::prepare()}
     *
     * @param array<int, mixed> $attributes
     */
    public function __construct(private readonly Pdo $pdo, string $sql, private array $attributes)
    {
        $this->queryString = $sql;
        $this->mode = FetchMode::ofAttribute($attributes[\PDO::ATTR_DEFAULT_FETCH_MODE] ?? \PDO::FETCH_BOTH);
    }

    public function bindValue(string|int $param, mixed $value, int $type = \PDO::PARAM_STR): bool
    {
        $key = \is_int($param) ? $param - 1 : \ltrim($param, ':');
        unset($this->variables[$key]);
        $this->bound[$key] = $this->value($value, $type);

        return true;
    }

    public function bindParam(string|int $param, mixed &$var, int $type = \PDO::PARAM_STR, int $maxLength = 0, mixed $driverOptions = null): bool
    {
        $key = \is_int($param) ? $param - 1 : \ltrim($param, ':');
        unset($this->bound[$key]);
        $this->variables[$key] = [&$var, $type];

        return true;
    }

    public function bindColumn(string|int $column, mixed &$var, int $type = \PDO::PARAM_STR, int $maxLength = 0, mixed $driverOptions = null): bool
    {
        $this->columnVariables[$column] = [&$var, $type];

        return true;
    }

    /** @param array<int|string, mixed>|null $params instead of what was bound; positions are counted from 0 */
    public function execute(?array $params = null): bool
    {
        $values = $this->bound;
        foreach ($this->variables as $key => [$variable, $type]) {
            $values[$key] = $this->value($variable, $type);
        }
        if ($params !== null) {
            $values = [];
            foreach ($params as $key => $value) {
                $values[\is_int($key) ? $key : \ltrim($key, ':')] = $this->value($value, \is_bool($value) ? \PDO::PARAM_BOOL : \PDO::PARAM_STR);
            }
        }
        \ksort($values);
        $this->run($values);

        return true;
    }

    /**
     * @internal for {@see Pdo::query()}
     *
     * @param array<int|string, mixed>|null $values null: the text has no placeholders, and goes as it is
     */
    public function run(?array $values): void
    {
        [$columns, $rows, $this->affected] = $this->pdo->run($this->queryString, $values);
        $this->columns = match ($this->attributes[\PDO::ATTR_CASE] ?? \PDO::CASE_NATURAL) {
            \PDO::CASE_LOWER => \array_map(\strtolower(...), $columns),
            \PDO::CASE_UPPER => \array_map(\strtoupper(...), $columns),
            default => $columns,
        };
        $this->rows = ($this->attributes[\PDO::ATTR_STRINGIFY_FETCHES] ?? false) ? self::strings($rows) : $rows;
        $this->next = 0;
    }

    public function fetch(int $mode = \PDO::FETCH_DEFAULT, int $cursorOrientation = \PDO::FETCH_ORI_NEXT, int $cursorOffset = 0): mixed
    {
        $mode = $mode === \PDO::FETCH_DEFAULT ? $this->mode : FetchMode::ofOne($mode, $this->mode);
        $row = $this->nextRow();

        return $row === null ? false : $mode->one($this->columns, $row);
    }

    /** @return array<array-key, mixed> */
    public function fetchAll(int $mode = \PDO::FETCH_DEFAULT, mixed ...$args): array
    {
        $mode = $mode === \PDO::FETCH_DEFAULT && $args === [] ? $this->mode : FetchMode::ofAll($mode, $args, $this->mode);

        return $mode->isPlain() ? $this->allOf($mode->kind) : $mode->all($this->columns, $this->rest());
    }

    public function fetchColumn(int $column = 0): mixed
    {
        $row = $this->nextRow();
        if ($row === null) {
            return false;
        }

        return \array_key_exists($column, $row) ? $row[$column] : throw new \ValueError("Column $column does not exist: the result has " . \count($this->columns));
    }

    /** @param array<array-key, mixed> $constructorArgs */
    public function fetchObject(?string $class = 'stdClass', array $constructorArgs = []): object|false
    {
        $row = $this->nextRow();
        if ($row === null) {
            return false;
        }
        /** @var object */
        return FetchMode::ofStatement(\PDO::FETCH_CLASS, [$class ?? \stdClass::class, $constructorArgs])->one($this->columns, $row);
    }

    public function setFetchMode(int $mode, mixed ...$args): true
    {
        $this->mode = FetchMode::ofStatement($mode, $args);

        return true;
    }

    public function getIterator(): \Iterator
    {
        foreach ($this->rest() as $row) {
            yield $this->mode->one($this->columns, $row);
        }
    }

    public function rowCount(): int
    {
        return $this->affected;
    }

    public function columnCount(): int
    {
        return \count($this->columns);
    }

    /** @return array{name: string, len: int, precision: int, pdo_type: int, native_type: string, flags: list<string>}|false of what PDO tells only the name */
    public function getColumnMeta(int $column): array|false
    {
        if (!isset($this->columns[$column])) {
            return false;
        }

        return ['name' => $this->columns[$column], 'len' => -1, 'precision' => 0, 'pdo_type' => \PDO::PARAM_STR, 'native_type' => '', 'flags' => []];
    }

    public function closeCursor(): bool
    {
        [$this->rows, $this->next] = [[], 0];

        return true;
    }

    /** The results of a procedure after the first are not kept. */
    public function nextRowset(): bool
    {
        return false;
    }

    public function getAttribute(int $name): mixed
    {
        return $this->attributes[$name] ?? null;
    }

    public function setAttribute(int $attribute, mixed $value): bool
    {
        $this->attributes[$attribute] = $value;

        return true;
    }

    public function errorCode(): ?string
    {
        return $this->pdo->errorCode();
    }

    /** @return array{string, int|null, string|null} */
    public function errorInfo(): array
    {
        return $this->pdo->errorInfo();
    }

    public function debugDumpParams(): ?bool
    {
        echo 'SQL: [', \strlen($this->queryString), '] ', $this->queryString, "\nParams:  ", \count($this->bound) + \count($this->variables), "\n";

        return null;
    }

    /** @return list<mixed>|null */
    private function nextRow(): ?array
    {
        $row = $this->rows[$this->next] ?? null;
        if ($row === null) {
            return null;
        }
        // A row that was read is not kept: a loop over a large result shrinks it.
        $this->rows[$this->next++] = [];
        foreach ($this->columnVariables as $column => $_) {
            $index = \is_int($column) ? $column - 1 : \array_search($column, $this->columns, true);
            $this->columnVariables[$column][0] = $index === false ? null : $row[$index] ?? null;
        }

        return $row;
    }

    /** @return \Generator<list<mixed>> the rows that are left */
    private function rest(): \Generator
    {
        while (($row = $this->nextRow()) !== null) {
            yield $row;
        }
    }

    /** @return list<mixed> the rows that are left; the modes that Laravel uses need no call for each */
    private function allOf(int $mode): array
    {
        $rows = $this->next === 0 ? $this->rows : \array_slice($this->rows, $this->next);
        [$this->rows, $this->next] = [[], 0];
        if ($mode === \PDO::FETCH_NUM) {
            return $rows;
        }
        $columns = $this->columns;
        $all = [];
        foreach ($rows as $row) {
            $named = \array_combine($columns, $row);
            $all[] = $mode === \PDO::FETCH_OBJ ? (object) $named : $named;
        }

        return $all;
    }

    /**
     * @param list<list<scalar|null>> $rows
     *
     * @return list<list<string|null>>
     */
    private static function strings(array $rows): array
    {
        return \array_map(static fn(array $row): array => \array_map(static fn(mixed $value): ?string => $value === null ? null : (string) $value, $row), $rows);
    }

    /** A value as PDO sends it. */
    private function value(mixed $value, int $type): mixed
    {
        if (\is_resource($value)) {
            $value = (string) \stream_get_contents($value);
        }
        $kind = $this->pdo->database()->driver();

        return match (true) {
            $value === null, $type === \PDO::PARAM_NULL => null,
            $type === \PDO::PARAM_LOB => new Bytes((string) $value),
            // PostgreSQL reads each parameter as the type that the statement gives it.
            $kind === Driver::Postgres && \is_bool($value) => $type === \PDO::PARAM_BOOL ? $value : (string) (int) $value,
            $kind === Driver::Postgres && $type === \PDO::PARAM_BOOL => (bool) $value,
            \is_bool($value) => (int) $value,
            $kind !== Driver::Postgres && $type === \PDO::PARAM_INT && \is_numeric($value) => (int) $value,
            $kind !== Driver::Postgres && $type === \PDO::PARAM_BOOL => (int) (bool) $value,
            default => (string) $value,
        };
    }
}
