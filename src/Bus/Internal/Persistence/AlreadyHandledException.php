<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Bus\PublicFailure;

/**
 * The handler has processed this message before; it only needs to be acknowledged.
 *
 * @internal
 */
final class AlreadyHandledException extends \Exception implements PublicFailure {}
