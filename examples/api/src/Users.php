<?php

declare(strict_types=1);

namespace Weft\Examples\Api;

use Weft\Http\Body;
use Weft\Http\HttpException;
use Weft\Http\Request;

/** One user, who would be in a database. */
final class Users
{
    private readonly User $ada;
    private readonly string $passwordHash;
    private readonly string $tokenHash;

    public function __construct(string $password, string $token)
    {
        $this->ada = new User(1, 'ada');
        $this->passwordHash = \password_hash($password, \PASSWORD_DEFAULT);
        $this->tokenHash = \hash('sha256', $token);
    }

    /** Begins a session. */
    public function login(#[Body] Credentials $credentials, Request $request): User
    {
        if ($credentials->name !== $this->ada->name || !\password_verify($credentials->password, $this->passwordHash)) {
            throw new HttpException(401, 'Wrong name or password');
        }
        $request->session()->renew()->set('user', $this->ada->id);

        return $this->ada;
    }

    /** Ends the session. */
    public function logout(Request $request): void
    {
        $request->session()->destroy();
    }

    public function find(mixed $id): ?User
    {
        return $id === $this->ada->id ? $this->ada : null;
    }

    public function ofToken(#[\SensitiveParameter] string $token): ?User
    {
        return \hash_equals($this->tokenHash, \hash('sha256', $token)) ? $this->ada : null;
    }
}
