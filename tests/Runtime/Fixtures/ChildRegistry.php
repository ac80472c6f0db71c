<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime\Fixtures;

final class ChildRegistry extends Registry
{
}
