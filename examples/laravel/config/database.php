<?php

declare(strict_types=1);

return [
    'default' => env('DB_CONNECTION', 'sqlite'),
    'connections' => [
        'sqlite' => ['driver' => 'sqlite', 'database' => env('DB_DATABASE', storage_path('app.db')), 'prefix' => '', 'foreign_key_constraints' => true],
        'pgsql' => ['driver' => 'pgsql', 'url' => env('DATABASE_URL'), 'charset' => 'utf8', 'prefix' => '', 'schema' => env('DB_SCHEMA', 'public')],
        'mysql' => ['driver' => 'mysql', 'url' => env('DATABASE_URL'), 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'prefix' => '', 'strict' => true],
    ],
    'migrations' => 'migrations',
];
