<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A queue was named that nobody has declared. */
final class UndefinedQueue extends BusException {}
