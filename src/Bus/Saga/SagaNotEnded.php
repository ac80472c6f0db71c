<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** A saga that is to be reopened is still open. */
final class SagaNotEnded extends BusException implements Unrecoverable {}
