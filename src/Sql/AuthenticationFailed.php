<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The server refused the user, the password or the database. */
final class AuthenticationFailed extends ConnectionFailed
{
}
