<?php

declare(strict_types=1);

/*
 * A gRPC server with a method of every kind, and reflection:
 *
 *     bin/weft run examples/users/app.php --workers=2
 *
 * or one process, php -d extension=…/libweft.so examples/users/app.php. PORT is 9090 unless it says otherwise; client.php calls it.
 */

namespace Weft\Examples\Users;

use Weft\App;
use Weft\Grpc\ServerOptions;

require __DIR__ . '/autoload.php';

$app = new App();
$app->grpc('127.0.0.1:' . (\getenv('PORT') ?: '9090'), new UserDirectory(), new ServerOptions(reflection: true));
$app->run();
