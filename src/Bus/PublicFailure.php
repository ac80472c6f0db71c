<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks exceptions whose message is sent to the sender of a request ({@see Bus::request()}). For other exceptions the sender only
 * receives the class and the id under which the handler's log has the details.
 */
interface PublicFailure extends \Throwable {}
