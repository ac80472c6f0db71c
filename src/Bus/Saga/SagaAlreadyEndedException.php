<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** A message is for a saga that has completed, failed or expired; see {@see Saga::$ended} and {@see Saga::$expired}. */
final class SagaAlreadyEndedException extends BusException implements Unrecoverable {}
