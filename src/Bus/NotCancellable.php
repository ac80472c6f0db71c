<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The message waits in queues of the broker, from which a single one cannot be taken back: that needs a database. */
final class NotCancellable extends BusException {}
