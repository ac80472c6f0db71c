<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Weft\Cli\CliException;

/**
 * protoc is missing, or rejects the files. The message is its output.
 *
 * @internal
 */
final class ProtoGenerationException extends CliException
{
}
