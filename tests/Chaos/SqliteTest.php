<?php

declare(strict_types=1);

namespace Weft\Tests\Chaos;

final class SqliteTest extends ChaosTestCase
{
    protected function transport(): string
    {
        return 'sqlite';
    }

    protected function faults(): int
    {
        return 1;
    }
}
