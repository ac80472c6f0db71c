<?php

declare(strict_types=1);

namespace Weft\Examples\Api;

use Weft\Http\HttpException;
use Weft\Http\Request;

/** Middleware that knows who is calling: by a bearer token, as programs have, or by the session of a browser. */
final class Authentication
{
    public function __construct(private readonly Users $users)
    {
    }

    public function __invoke(Request $request, \Closure $next): mixed
    {
        $token = \preg_match('/^Bearer ([\w.~+\/-]+=*)$/Di', $request->header('authorization') ?? '', $found) === 1 ? $found[1] : null;
        $user = $token === null ? $this->users->find($request->session()->value('user')) : $this->users->ofToken($token);

        return $next($request->setAttribute('user', $user ?? throw new HttpException(401, 'Log in first', ['www-authenticate' => 'Bearer'])));
    }
}
