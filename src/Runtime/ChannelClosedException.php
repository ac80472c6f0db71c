<?php

declare(strict_types=1);

namespace Weft\Runtime;

/** The channel takes no more values, or has no more to give. */
final class ChannelClosedException extends RuntimeException
{
}
