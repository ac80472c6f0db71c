<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Request;

/** @internal */
final class RequestArgument implements Argument
{
    public function value(Request $request): Request
    {
        return $request;
    }
}
