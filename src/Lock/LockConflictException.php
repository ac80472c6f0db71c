<?php

declare(strict_types=1);

namespace Weft\Lock;

/** Somebody else had the lock for as long as one was ready to wait. A handler that throws it is tried again. */
final class LockConflictException extends LockException {}
