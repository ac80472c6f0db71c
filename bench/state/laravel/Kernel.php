<?php

declare(strict_types=1);

namespace Weft\Bench\State\Laravel;

use Illuminate\Auth\GenericUser;
use Illuminate\Auth\Middleware\Authenticate;
use Illuminate\Cookie\Middleware\AddQueuedCookiesToResponse;
use Illuminate\Cookie\Middleware\EncryptCookies;
use Illuminate\Foundation\Http\Kernel as HttpKernel;
use Illuminate\Http\Request;
use Illuminate\Session\Middleware\StartSession;

/** An application with everything that can be mixed up: users, sessions, locales, Eloquent. */
final class Kernel extends HttpKernel
{
    /** @var array<string, list<class-string>> */
    protected $middlewareGroups = ['web' => [EncryptCookies::class, AddQueuedCookiesToResponse::class, StartSession::class, Authenticate::class]];

    public static function user(Request $request): ?GenericUser
    {
        return \preg_match('/^user\d+$/D', (string) $request->getUser()) === 1 && $request->getPassword() === 'secret' ? new GenericUser(['id' => $request->getUser()]) : null;
    }
}
