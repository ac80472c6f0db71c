<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\Request;
use Weft\Http\Response;

/**
 * A response body that sends itself.
 *
 * @internal
 */
interface Body
{
    /** Sends the response it belongs to. Returns when the whole body has been produced. */
    public function send(Request $request, Response $response): void;
}
