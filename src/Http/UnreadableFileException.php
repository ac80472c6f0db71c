<?php

declare(strict_types=1);

namespace Weft\Http;

/** A file cannot be an answer. The message has its path, which is none of the client's business. */
final class UnreadableFileException extends ServerException
{
}
