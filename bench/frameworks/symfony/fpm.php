<?php

declare(strict_types=1);

// The front controller of PHP-FPM.

use Symfony\Component\HttpFoundation\Request;
use Weft\Bench\Frameworks\Symfony\Kernel;

require __DIR__ . '/autoload.php';

$kernel = new Kernel('prod', false);
$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
