<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** The saga of a message was not started, or its row was deleted; see {@see Saga::$missing}. */
final class SagaNotFoundException extends BusException implements Unrecoverable {}
