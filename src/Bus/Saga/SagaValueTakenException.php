<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** The value is already associated with another saga of the class. */
final class SagaValueTakenException extends BusException implements Unrecoverable {}
