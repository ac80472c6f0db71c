<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Recoverable;

/** A message is for a saga that is not there, but may be when it is tried again; see {@see UnmatchedPolicy::Retry}. */
final class SagaNotStarted extends BusException implements Recoverable {}
