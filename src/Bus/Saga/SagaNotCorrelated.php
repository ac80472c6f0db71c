<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\BusException;
use Weft\Bus\Unrecoverable;

/** The property or header that says which saga a message is for holds no such value. */
final class SagaNotCorrelated extends BusException implements Unrecoverable {}
