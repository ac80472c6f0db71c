<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc\Weft;

use Example\Api\GetUserRequest;
use Example\Api\ListUserRequest;
use Example\Api\User;
use Weft\Grpc\Call;

final class GoogleUsers implements ApiUsers
{
    public function get(GetUserRequest $request, Call $call): User
    {
        return self::user((int) $request->getId(), 'dmitry.k@test.tld', 'Dmitry K.', 228.53);
    }

    public function list(ListUserRequest $request, Call $call): iterable
    {
        for ($i = 0; $i < 10; $i++) {
            yield self::user($i, "user$i@test", "User $i", $i * 1.53);
        }
    }

    private static function user(int $id, string $email, string $name, float $rating): User
    {
        return (new User())->setId($id)->setEmail($email)->setName($name)->setRating($rating);
    }
}
