<?php

declare(strict_types=1);

return [
    'default' => 'state',
    'connections' => ['state' => ['driver' => 'pgsql', 'url' => getenv('STATE_DATABASE'), 'charset' => 'utf8', 'prefix' => '']],
];
