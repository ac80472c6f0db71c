<?php

declare(strict_types=1);

namespace Weft\Lock;

/**
 * A lock ended before its owner gave it back: the process stood still, or its store could not be reached, for longer than
 * the lock lives. Somebody else may have it. A handler that throws it is tried again.
 */
final class LockLostException extends LockException {}
