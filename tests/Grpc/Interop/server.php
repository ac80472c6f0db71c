<?php

declare(strict_types=1);

// Serves the interoperability tests on a free port, which it prints.

use Weft\App;
use Weft\Tests\Grpc\Interop\Interop;
use Weft\Tests\Grpc\Interop\Load;

require dirname(__DIR__, 3) . '/autoload.php';

$app = new App();
$app->grpc('127.0.0.1:0', [new Interop($load = new Load()), $load], reflection: true);
$app->run(static function (array $addresses): void {
    echo $addresses[0], "\n";
});
