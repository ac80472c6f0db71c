<?php

declare(strict_types=1);

/* Symfony from Debian, where Composer is not used. */
if (!is_file(dirname(__DIR__, 3) . '/vendor/autoload.php')) {
    foreach (['Bundle/FrameworkBundle', 'Component/Messenger', 'Component/Runtime'] as $library) {
        require_once "/usr/share/php/Symfony/$library/autoload.php";
    }
}
