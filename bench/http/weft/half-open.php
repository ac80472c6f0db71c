<?php

declare(strict_types=1);

// What bench/http/half-open serves: bin/weft run bench/http/weft/half-open.php -- ADDRESS CONNECTIONS SECONDS

use Weft\App;
use Weft\Http\HeaderLimits;
use Weft\Http\Limits;
use Weft\Http\Response;

require __DIR__ . '/../../../autoload.php';

[, $address, $connections, $seconds] = $argv;
$app = new App();
$app->http($address, new Limits(connections: (int) $connections, clientShare: 1.0, header: new HeaderLimits(timeout: (float) $seconds)))
    ->get('/', static fn(): Response => Response::text('hello'));
$app->run();
