<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A queue cannot be deleted because it or its dead-letter queue has messages. */
final class QueueNotEmptyException extends BusException {}
