<?php

declare(strict_types=1);

namespace Weft\Tests\Testing;

/** The same on MariaDB. */
final class MariaDbDatabaseTest extends ServerDatabaseTest
{
    protected const SERVER = 'WEFT_MYSQL_DSN';
}
