<?php

declare(strict_types=1);

namespace Weft\Sql;

enum Driver: string
{
    case Postgres = 'postgres';
    case Mysql = 'mysql';
    case Sqlite = 'sqlite';
}
