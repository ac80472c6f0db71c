<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

enum Size: int
{
    case Large = 3;
}
