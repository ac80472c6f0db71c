<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Exception;

/** The channel takes no more values, or has no more to give. */
final class ChannelClosed extends \RuntimeException implements Exception
{
}
