<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

/**
 * A message was not handled, and not because of it: it goes back to its queue.
 *
 * @internal
 */
final class HandlingInterrupted extends \Exception {}
