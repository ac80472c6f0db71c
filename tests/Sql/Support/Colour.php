<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

enum Colour: string
{
    case Red = 'red';
}
