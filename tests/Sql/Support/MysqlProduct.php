<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

use Weft\Sql\Database;

/** What the server at WEFT_MYSQL_DSN is. `scripts/services` runs MySQL on systems that have no MariaDB. */
enum MysqlProduct
{
    case MariaDb;
    case Mysql;

    public static function ofServer(): self
    {
        /** @var array<string, self> $products by DSN */
        static $products = [];
        $dsn = \getenv('WEFT_MYSQL_DSN') ?: throw new \RuntimeException('WEFT_MYSQL_DSN is not set: run `make services`');

        return $products[$dsn] ??= self::at($dsn);
    }

    private static function at(string $dsn): self
    {
        $database = Database::connect($dsn);
        try {
            return \str_contains((string) $database->execute('SELECT VERSION()')->value(), 'MariaDB') ? self::MariaDb : self::Mysql;
        } finally {
            $database->close();
        }
    }
}
