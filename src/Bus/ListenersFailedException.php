<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Several listeners of an event failed; the previous exception is the first failure. */
final class ListenersFailedException extends BusException {}
