<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime\Fixtures;

class Registry
{
    protected const BEGINNING = 'declared';

    public static string $current = self::BEGINNING;
}
