<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Sql\Driver;

/**
 * The type of a column, in the words of each database.
 *
 * @internal
 */
final class Type
{
    /** Names under which PostgreSQL lists a type that is declared by a shorter one. */
    private const POSTGRES_NAMES = ['int' => 'integer', 'varchar' => 'character varying'];

    private function __construct(
        private readonly string $postgres,
        private readonly string $mysql,
        private readonly string $sqlite,
    ) {}

    /** The same name in every database, such as `BIGINT`. */
    public static function of(string $name): self
    {
        return new self($name, $name, $name);
    }

    public static function bigint(): self
    {
        return self::of('BIGINT');
    }

    public static function integer(): self
    {
        return self::of('INT');
    }

    public static function smallint(): self
    {
        return self::of('SMALLINT');
    }

    public static function double(): self
    {
        return new self('DOUBLE PRECISION', 'DOUBLE', 'DOUBLE');
    }

    /**
     * A short text that is compared byte by byte: identifiers have no language, and a collation would cost as much as the rest of an
     * insert. MariaDB's collations would treat "a", "A", "á" and "a " as equal.
     */
    public static function id(int $bytes): self
    {
        return new self("VARCHAR({$bytes}) COLLATE \"C\"", "VARBINARY({$bytes})", "VARCHAR({$bytes})");
    }

    /** A short text in the database's collation; in MariaDB compared byte by byte. */
    public static function name(int $length): self
    {
        return new self("VARCHAR({$length})", "VARBINARY({$length})", "VARCHAR({$length})");
    }

    /** A text of any length; the TEXT of MariaDB is limited to 64 KiB. */
    public static function text(): self
    {
        return new self('TEXT', 'LONGTEXT CHARACTER SET utf8mb4', 'TEXT');
    }

    public static function bytes(): self
    {
        return new self('BYTEA', 'LONGBLOB', 'BLOB');
    }

    /**
     * A number that the database gives each new row, in the order of the inserts. A column of this type is the primary key.
     *
     * @param bool $always whether PostgreSQL refuses a number given by the statement
     */
    public static function serial(bool $always): self
    {
        $generated = $always ? 'ALWAYS' : 'BY DEFAULT';

        return new self("BIGINT GENERATED {$generated} AS IDENTITY", 'BIGINT AUTO_INCREMENT', 'INTEGER');
    }

    public function sql(Driver $driver): string
    {
        return match ($driver) {
            Driver::Postgres => $this->postgres,
            Driver::Mysql => $this->mysql,
            Driver::Sqlite => $this->sqlite,
        };
    }

    /** The name under which {@see Catalog} finds a column of this type. */
    public function catalogued(Driver $driver): string
    {
        $name = \strtolower((string) \preg_replace('/ (COLLATE|CHARACTER SET|GENERATED|AUTO_INCREMENT).*$/', '', $this->sql($driver)));
        if ($driver !== Driver::Postgres) {
            return $name;
        }
        $first = (string) \strtok($name, '(');

        return \str_replace($first, self::POSTGRES_NAMES[$first] ?? $first, $name);
    }
}
