<?php

declare(strict_types=1);

/* Doctrine from Debian, where Composer is not used. It is not in the library's own autoloader: only its users have it. */
foreach (['Doctrine/DBAL', 'Doctrine/ORM'] as $library) {
    if (!is_file(dirname(__DIR__, 3) . '/vendor/autoload.php') && is_file("/usr/share/php/$library/autoload.php")) {
        require_once "/usr/share/php/$library/autoload.php";
    }
}
