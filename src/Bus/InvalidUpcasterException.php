<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A method cannot be an upcaster; names it and why. */
final class InvalidUpcasterException extends BusException {}
