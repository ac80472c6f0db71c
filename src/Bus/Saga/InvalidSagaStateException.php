<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** The stored state of a saga does not match its class, or is of a newer version than the class. */
final class InvalidSagaStateException extends BusException implements Unrecoverable {}
