<?php

declare(strict_types=1);

namespace Weft\Examples\Users;

use Weft\Grpc\Call;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;

/** Users that are made up as they are asked for. */
final class UserDirectory implements Users
{
    public function get(GetUserRequest $request, Call $call): User
    {
        if ($request->id < 0) {
            throw new StatusException(Status::InvalidArgument, "the id of a user is not negative, got $request->id");
        }

        return new User($request->id, 'dmitry.k@test.tld', 'Dmitry K.', 228.53);
    }

    public function list(ListUserRequest $request, Call $call): iterable
    {
        for ($i = 0; $i < 10; $i++) {
            yield new User($i, "user$i@test", "User $i", $i * 1.53);
        }
    }

    public function import(iterable $requests, Call $call): ImportSummary
    {
        $count = 0;
        foreach ($requests as $user) {
            $count++;
        }

        return new ImportSummary($count);
    }

    public function lookup(iterable $requests, Call $call): iterable
    {
        foreach ($requests as $request) {
            yield $this->get($request, $call);
        }
    }
}
