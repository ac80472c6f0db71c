<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The server refused the user or the password. */
final class AuthenticationException extends ConnectionException
{
}
