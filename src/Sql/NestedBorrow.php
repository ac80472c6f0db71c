<?php

declare(strict_types=1);

namespace Weft\Sql;

/** Every connection is held by a task that waits for another one: no wait could end this. Found at once. */
final class NestedBorrow extends SqlException
{
}
