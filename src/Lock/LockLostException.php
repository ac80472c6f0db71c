<?php

declare(strict_types=1);

namespace Weft\Lock;

/**
 * A lock expired before its owner released it: the process was blocked, or the store was unreachable, for longer than the
 * lock's lifetime. Another owner may hold it. The bus retries a handler that throws it.
 */
final class LockLostException extends LockException {}
