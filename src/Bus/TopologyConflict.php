<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A queue or exchange that is to be declared exists with other arguments; the message names both sides'. Nothing was changed. */
final class TopologyConflict extends BusException {}
