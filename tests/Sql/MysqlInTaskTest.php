<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use function Weft\run;

/** The same inside a task, where waiting suspends instead of blocking. */
final class MysqlInTaskTest extends MysqlTest
{
    protected function runTest(): mixed
    {
        return run(fn (): mixed => parent::runTest());
    }
}
