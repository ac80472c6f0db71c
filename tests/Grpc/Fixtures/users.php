<?php

declare(strict_types=1);

// Serves the users of the example on a free port, which it prints; users.php VERSION does not know that version of reflection.

use Weft\App;
use Weft\Examples\Users\UserDirectory;
use Weft\Grpc\Call;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;

require dirname(__DIR__, 3) . '/examples/users/autoload.php';

$unknown = $argv[1] ?? null;
$reflection = static function (Call $call, mixed $request, Closure $next) use ($unknown): mixed {
    if ($unknown === null || !str_starts_with($call->method(), '/grpc.reflection.')) {
        return $next($request);
    }
    if (str_starts_with($call->method(), "/grpc.reflection.$unknown.")) {
        throw new StatusException(Status::Unimplemented, "there is no reflection $unknown");
    }
    fwrite(STDERR, "answered {$call->method()}\n");

    return $next($request);
};
$app = new App();
$app->grpc('127.0.0.1:0', new UserDirectory(), new \Weft\Grpc\ServerOptions(interceptors: [$reflection], reflection: true));
$app->run(static function (array $addresses): void {
    echo $addresses[0], "\n";
});
