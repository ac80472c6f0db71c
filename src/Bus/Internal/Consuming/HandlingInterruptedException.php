<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

/**
 * Handling was interrupted for a reason outside of the message, which is requeued.
 *
 * @internal
 */
final class HandlingInterruptedException extends \Exception {}
