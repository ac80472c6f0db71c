<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use Weft\Tests\InTask;

/** The same inside a task. */
final class SqliteInTaskTest extends SqliteTest
{
    use InTask;
}
