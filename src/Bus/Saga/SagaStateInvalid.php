<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** A saga's row cannot be read: its class has changed, or the row is of a newer version than the class. */
final class SagaStateInvalid extends BusException implements Unrecoverable {}
