<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A queue or exchange already exists with other arguments. The message names both sides; nothing was changed. */
final class TopologyConflictException extends BusException {}
