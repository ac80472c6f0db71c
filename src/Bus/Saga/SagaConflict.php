<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Recoverable;

/** Another message has changed the saga meanwhile: nothing has taken effect, and the message is handled again. */
final class SagaConflict extends BusException implements Recoverable {}
