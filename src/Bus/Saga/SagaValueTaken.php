<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** A value is associated with another saga of the class already. */
final class SagaValueTaken extends BusException implements Unrecoverable {}
