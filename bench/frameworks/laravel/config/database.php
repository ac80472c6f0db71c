<?php

declare(strict_types=1);

return [
    'default' => 'bench',
    'connections' => ['bench' => ['driver' => 'pgsql', 'url' => getenv('DATABASE_URL'), 'charset' => 'utf8', 'prefix' => '']],
];
