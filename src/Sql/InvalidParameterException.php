<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The parameters do not fit the statement; it was not sent. */
final class InvalidParameterException extends SqlException
{
}
