<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\Request;
use Weft\Http\Response;

/**
 * A body that knows how it is sent.
 *
 * @internal
 */
interface Body
{
    /** Sends the answer it belongs to. Returns when nothing of it is left to be made. */
    public function send(Request $request, Response $response): void;
}
