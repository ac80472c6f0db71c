<?php

declare(strict_types=1);

// Compiles the container before anything is measured.

use Weft\Bench\Frameworks\Symfony\Kernel;

require __DIR__ . '/autoload.php';

(new Kernel('prod', false))->boot();
