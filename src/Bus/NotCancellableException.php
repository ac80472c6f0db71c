<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The delayed message is in a queue of the broker, which cannot remove a single message. Cancelling needs a database. */
final class NotCancellableException extends BusException {}
