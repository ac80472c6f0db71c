<?php

declare(strict_types=1);

namespace Weft\Http;

/** A file cannot be served. The message contains its path, so it is logged and not sent to the client. */
final class UnreadableFileException extends ServerException
{
}
