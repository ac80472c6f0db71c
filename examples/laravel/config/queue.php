<?php

declare(strict_types=1);

return [
    'default' => 'weft',
    'connections' => ['weft' => ['driver' => 'weft', 'bus' => env('WEFT_BUS', 'sqlite:' . storage_path('bus.db')), 'queue' => env('WEFT_QUEUE', 'default')]],
    'failed' => ['driver' => 'database-uuids', 'database' => env('DB_CONNECTION', 'sqlite'), 'table' => 'failed_jobs'],
];
