<?php

declare(strict_types=1);

/* Symfony from Debian, where Composer is not used. */
if (!is_file(dirname(__DIR__, 3) . '/vendor/autoload.php')) {
    // Symfony 6 asks Composer which packages are installed: this class is in Debian's package composer.
    is_file($composer = '/usr/share/php/Composer/InstalledVersions.php') && require_once $composer;
    foreach (['Bundle/FrameworkBundle', 'Component/Messenger', 'Component/Runtime'] as $library) {
        require_once "/usr/share/php/Symfony/$library/autoload.php";
    }
    // Responses with files ask it for the type, where it is installed.
    is_file($mime = '/usr/share/php/Symfony/Component/Mime/autoload.php') && require_once $mime;
}
