<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Recoverable;

/** Another message has changed the saga at the same time: the transaction was rolled back and the message is handled again. */
final class SagaConflictException extends BusException implements Recoverable {}
