<?php

declare(strict_types=1);

namespace Weft\Examples\Customers;

final class AlreadyRunning extends \RuntimeException
{
}
