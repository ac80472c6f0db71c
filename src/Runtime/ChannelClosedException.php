<?php

declare(strict_types=1);

namespace Weft\Runtime;

/** A value was sent to a closed channel, or received from one that is closed and empty. */
final class ChannelClosedException extends RuntimeException
{
}
