<?php

declare(strict_types=1);

// Weft with SLOTS kernels in one process.

use Weft\App;
use Weft\Bench\Frameworks\Symfony\Kernel;
use Weft\Bridge\Symfony\SymfonyHandler;

require __DIR__ . '/autoload.php';

$app = new App();
$app->http('127.0.0.1:' . getenv('PORT'))->fallback(SymfonyHandler::pool(static fn(): Kernel => new Kernel('prod', false), (int) getenv('SLOTS'), 60.0));
$app->run();
