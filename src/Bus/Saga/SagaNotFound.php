<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** A message is for a saga that was never started, or was forgotten; see {@see Saga::$missing}. */
final class SagaNotFound extends BusException implements Unrecoverable {}
