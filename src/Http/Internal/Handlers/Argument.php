<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Http\HttpException;
use Weft\Http\Request;

/**
 * Where the value of a handler's parameter comes from.
 *
 * @internal
 */
interface Argument
{
    /**
     * @throws FaultsException
     * @throws HttpException
     */
    public function value(Request $request): mixed;
}
