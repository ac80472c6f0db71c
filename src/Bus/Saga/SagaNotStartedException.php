<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Recoverable;

/** The saga of a message does not exist yet; the message is retried. See {@see UnmatchedPolicy::Retry}. */
final class SagaNotStartedException extends BusException implements Recoverable {}
