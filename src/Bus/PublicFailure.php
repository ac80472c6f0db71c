<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks exceptions whose message whoever has asked ({@see Bus::request()}) may read. Of all others it learns the class and under which
 * id the log of the handler's program has the reason.
 */
interface PublicFailure extends \Throwable {}
