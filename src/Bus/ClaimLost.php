<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The body of a message is not in the store it should be in, or not the one that was put there. Names its id. */
final class ClaimLost extends BusException {}
