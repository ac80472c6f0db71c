<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** A saga cannot be reopened because it is open. */
final class SagaNotEndedException extends BusException implements Unrecoverable {}
