<?php

declare(strict_types=1);

namespace Weft\Http;

/** A file that was uploaded cannot be kept or moved: no room, no permission, no such folder. */
final class UploadException extends ServerException
{
}
