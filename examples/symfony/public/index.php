<?php

use App\Kernel;

require_once is_file(dirname(__DIR__) . '/vendor/autoload_runtime.php') ? dirname(__DIR__) . '/vendor/autoload_runtime.php' : dirname(__DIR__) . '/autoload_runtime.php';

return static fn (array $context): Kernel => new Kernel($context['APP_ENV'], (bool) $context['APP_DEBUG']);
