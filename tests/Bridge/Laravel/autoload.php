<?php

declare(strict_types=1);

/* Laravel from Debian, where Composer is not used. */
if (!is_file(dirname(__DIR__, 3) . '/vendor/autoload.php') && is_file('/usr/share/php/Illuminate/autoload.php')) {
    require_once '/usr/share/php/Illuminate/autoload.php';
}
