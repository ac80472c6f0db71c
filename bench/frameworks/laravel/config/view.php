<?php

declare(strict_types=1);

return ['paths' => [dirname(__DIR__) . '/views'], 'compiled' => storage_path('views')];
