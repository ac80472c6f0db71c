<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine;

use Doctrine\DBAL\Driver\Statement as DbalStatement;
use Doctrine\DBAL\ParameterType;
use Weft\Sql\Bytes;
use Weft\Sql\Driver as Kind;

/** A text and its parameters. The connection that runs it prepares it, and remembers that. */
final class Statement implements DbalStatement
{
    /** @var array<int|string, array{mixed, ParameterType|int}> values and their types; positions are counted from 1 */
    private array $bound = [];

    /** @internal made by {@see Connection} */
    public function __construct(private readonly Connection $connection, private readonly string $sql, private readonly Kind $kind)
    {
    }

    /**
     * @param int|string $param position from 1, or name with or without colon
     * @param ParameterType|int $type
     */
    public function bindValue($param, mixed $value, $type = ParameterType::STRING): void
    {
        $this->bound[$param] = [$value, $type];
    }

    /**
     * DBAL 3 only.
     *
     * @param int|string $param
     * @param ParameterType|int $type
     */
    public function bindParam($param, mixed &$variable, $type = ParameterType::STRING, $length = null): bool
    {
        $this->bound[$param] = [&$variable, $type];

        return true;
    }

    /**
     * @param array<int|string, mixed>|null $params DBAL 3 only: instead of what was bound
     *
     * @throws Exception
     */
    public function execute($params = null): Result
    {
        if ($params !== null) {
            foreach ($params as $key => $value) {
                $this->bound[\is_int($key) ? $key + 1 : $key] = [$value, ParameterType::STRING];
            }
        }
        $values = [];
        foreach ($this->bound as $key => [$value, $type]) {
            $values[\is_int($key) ? $key - 1 : $key] = $this->value($value, $type);
        }
        \ksort($values);

        return $this->connection->run($this->sql, $values);
    }

    /** @param ParameterType|int $type */
    private function value(mixed $value, $type): mixed
    {
        if (\is_resource($value)) {
            $value = \stream_get_contents($value);
        }

        return match (true) {
            $value === null, $type === ParameterType::NULL => null,
            $type === ParameterType::BINARY, $type === ParameterType::LARGE_OBJECT => new Bytes((string) $value),
            $type === ParameterType::BOOLEAN => $this->boolean($value),
            $type === ParameterType::INTEGER => self::integer($value),
            \is_bool($value), \is_int($value), \is_float($value), $value instanceof \Stringable => (string) $value,
            default => $value,
        };
    }

    private function boolean(mixed $value): mixed
    {
        return match (true) {
            // PostgreSQL has words for it.
            $this->kind === Kind::Postgres && \is_string($value) => $value,
            $this->kind === Kind::Postgres => (bool) $value,
            default => (int) (bool) $value,
        };
    }

    private static function integer(mixed $value): mixed
    {
        return match (true) {
            \is_bool($value) => (int) $value,
            // A number beyond 64 bits stays exact.
            \is_string($value) && \is_numeric($value) && (string) (int) $value === $value => (int) $value,
            default => $value,
        };
    }
}
