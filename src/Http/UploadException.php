<?php

declare(strict_types=1);

namespace Weft\Http;

/** An uploaded file cannot be stored or moved, for example because the disk is full or the directory is missing. */
final class UploadException extends ServerException
{
}
