<?php

declare(strict_types=1);

// PHP-FPM serves page.php.

require __DIR__ . '/page.php';

header('Content-Type: text/plain');
echo page($_SERVER['SCRIPT_NAME'] ?? '');
