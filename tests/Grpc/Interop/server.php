<?php

declare(strict_types=1);

// Serves the interoperability tests on a free port, which it prints; with TLS where a certificate and its key are named.

use Weft\App;
use Weft\Grpc\Limits;
use Weft\Grpc\MessageLimits;
use Weft\Http\Certificate;
use Weft\Http\Tls;
use Weft\Tests\Grpc\Interop\Interop;
use Weft\Tests\Grpc\Interop\Load;

require dirname(__DIR__, 3) . '/autoload.php';

$app = new App();
$tls = isset($argv[2]) ? new Tls(new Certificate($argv[1], $argv[2])) : null;
// grpc-java's very_large_request has 10 MiB.
$app->grpc('127.0.0.1:0', [new Interop($load = new Load()), $load], new \Weft\Grpc\ServerOptions(limits: new Limits(messages: new MessageLimits(bytes: 16_777_216))), tls: $tls);
$app->run(static function (array $addresses): void {
    echo $addresses[0], "\n";
});
