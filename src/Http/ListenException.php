<?php

declare(strict_types=1);

namespace Weft\Http;

/** The system refused the address: it is in use, not of this machine, or not allowed. */
final class ListenException extends ServerException
{
}
