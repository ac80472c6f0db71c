<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/**
 * protoc is missing, or refuses the files. The message is what it said.
 *
 * @internal
 */
final class ProtoGenerationFailed extends \RuntimeException implements \Weft\Exception
{
}
