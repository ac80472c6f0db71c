<?php

declare(strict_types=1);

namespace Weft\Tests\Chaos;

final class PostgresTest extends ChaosTestCase
{
    protected function transport(): string
    {
        return 'postgres';
    }

    protected function faults(): int
    {
        return 4;
    }
}
