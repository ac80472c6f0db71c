<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Bus\PublicFailure;

/**
 * The handler has handled this message before: there is nothing to do but to acknowledge it.
 *
 * @internal
 */
final class AlreadyHandled extends \Exception implements PublicFailure {}
