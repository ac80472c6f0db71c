<?php

declare(strict_types=1);

/*
 * Calls every method of app.php: php -d extension=…/libweft.so examples/users/client.php [HOST:PORT]
 */

namespace Weft\Examples\Users;

use Weft\Grpc\Client\ChannelOptions;
use Weft\Grpc\Client\Http2Channel;
use Weft\Grpc\StatusException;

use function Weft\run;

require __DIR__ . '/autoload.php';

$users = new UsersClient(Http2Channel::connect($argv[1] ?? '127.0.0.1:9090', options: new ChannelOptions(timeout: 5.0)));

run(static function () use ($users): void {
    $user = $users->get(new GetUserRequest(228));
    echo "get: $user->name <$user->email> $user->rating\n";

    foreach ($users->list(new ListUserRequest()) as $user) {
        echo "list: $user->name\n";
    }

    $new = static function (): \Generator {
        for ($id = 1; $id <= 3; $id++) {
            yield new User($id, "user$id@test", "User $id");
        }
    };
    echo "import: {$users->import($new())->count}\n";

    foreach ($users->lookup([new GetUserRequest(1), new GetUserRequest(2)]) as $user) {
        echo "lookup: $user->id\n";
    }

    try {
        $users->get(new GetUserRequest(-1));
    } catch (StatusException $failure) {
        echo "get: {$failure->status->name}, {$failure->getMessage()}\n";
    }
});
