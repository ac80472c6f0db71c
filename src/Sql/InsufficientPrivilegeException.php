<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The user may not do this (SQLSTATE 42501). */
final class InsufficientPrivilegeException extends InvalidStatementException
{
}
