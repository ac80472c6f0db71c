<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** The property or header that identifies the saga of a message has no valid value. */
final class SagaNotCorrelatedException extends BusException implements Unrecoverable {}
