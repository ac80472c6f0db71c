<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ordering;

/**
 * The worker stops and the order of a message is not known: it goes back unsettled.
 *
 * @internal
 */
final class OrderUnknown extends \Exception {}
