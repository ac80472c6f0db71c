<?php

declare(strict_types=1);

return [
    'driver' => 'file',
    'lifetime' => 120,
    'expire_on_close' => true,
    'encrypt' => false,
    'files' => storage_path('sessions'),
    'lottery' => [0, 100],
    'cookie' => 'session',
    'path' => '/',
    'domain' => null,
    'secure' => false,
    'http_only' => true,
    'same_site' => 'lax',
];
