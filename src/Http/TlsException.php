<?php

declare(strict_types=1);

namespace Weft\Http;

/** A certificate, its key or the file of client authorities cannot be used. */
final class TlsException extends ServerException
{
}
