<?php

declare(strict_types=1);

namespace Weft\Bus;

/** No reply came in time; one that comes later is ignored. Whether a command was handled is unknown. */
final class RequestTimedOut extends BusException {}
