<?php

declare(strict_types=1);

namespace Weft\Http;

/** A certificate, its key or the authorities of clients cannot be used. */
final class TlsException extends ServerException
{
}
