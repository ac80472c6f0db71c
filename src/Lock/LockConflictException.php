<?php

declare(strict_types=1);

namespace Weft\Lock;

/** Another owner held the lock for the whole waiting time. The bus retries a handler that throws it. */
final class LockConflictException extends LockException {}
