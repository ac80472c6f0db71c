<?php

declare(strict_types=1);

return [
    'default' => 'smtp',
    'mailers' => ['smtp' => ['transport' => 'smtp', 'host' => env('MAIL_HOST', '127.0.0.1'), 'port' => env('MAIL_PORT', 25), 'encryption' => null]],
    'from' => ['address' => 'shop@example.org', 'name' => 'Shop'],
];
