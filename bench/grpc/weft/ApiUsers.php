<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc\Weft;

use Example\Api\GetUserRequest;
use Example\Api\ListUserRequest;
use Example\Api\User;
use Weft\Grpc\Call;

/** What protoc-gen-weft makes of the service, with the messages of protoc --php_out. */
interface ApiUsers
{
    final public const SERVICE = 'api.Users';
    final public const METHODS = [
        'Get' => ['get', GetUserRequest::class, User::class, false, false],
        'List' => ['list', ListUserRequest::class, User::class, false, true],
    ];

    public function get(GetUserRequest $request, Call $call): User;

    /** @return iterable<User> */
    public function list(ListUserRequest $request, Call $call): iterable;
}
