<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** A message would start a saga that exists already; see {@see SagaStart::$existing}. */
final class SagaExistsException extends BusException implements Unrecoverable {}
