<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Request;

/**
 * The place of the WebSocket, which there is only after the handshake.
 *
 * @internal
 */
final class WebSocketArgument implements Argument
{
    public function value(Request $request): null
    {
        return null;
    }
}
