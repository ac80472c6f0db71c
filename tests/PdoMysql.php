<?php

declare(strict_types=1);

namespace Weft\Tests;

/** Attributes of pdo_mysql, under the names that the version of PHP has for them: 8.4 has moved them, and 8.5 deprecates the former names. */
final class PdoMysql
{
    public static function attribute(string $name): int
    {
        return (int) \constant(\PHP_VERSION_ID >= 80400 ? "Pdo\\Mysql::ATTR_$name" : "PDO::MYSQL_ATTR_$name");
    }
}
