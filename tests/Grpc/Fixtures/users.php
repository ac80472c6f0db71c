<?php

declare(strict_types=1);

// Serves the users of the example on a free port, which it prints.

use Weft\App;
use Weft\Examples\Users\UserDirectory;

require dirname(__DIR__, 3) . '/examples/users/autoload.php';

$app = new App();
$app->grpc('127.0.0.1:0', new UserDirectory(), reflection: true);
$app->run(static function (array $addresses): void {
    echo $addresses[0], "\n";
});
