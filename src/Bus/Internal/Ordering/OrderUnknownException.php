<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ordering;

/**
 * The worker stops while the order of a message is unknown; the message is requeued.
 *
 * @internal
 */
final class OrderUnknownException extends \Exception {}
