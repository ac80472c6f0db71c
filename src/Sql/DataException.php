<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A value does not fit its type, such as an invalid uuid or an overflow (SQLSTATE class 22). */
final class DataException extends SqlException
{
}
