<?php

declare(strict_types=1);

namespace Weft\Sql;

/** No connection became free within the borrow timeout. */
final class PoolExhausted extends SqlException
{
}
