<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The TLS handshake failed, or the certificate is not trusted. */
final class TlsException extends ConnectionException
{
}
