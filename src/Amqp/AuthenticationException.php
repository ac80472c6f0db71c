<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The broker refused user or password. */
final class AuthenticationException extends ConnectionException
{
}
