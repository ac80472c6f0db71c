<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Weft\Cli\CliException;

/**
 * protoc is missing, or refuses the files. The message is what it said.
 *
 * @internal
 */
final class ProtoGenerationException extends CliException
{
}
