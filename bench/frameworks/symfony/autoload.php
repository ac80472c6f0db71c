<?php

declare(strict_types=1);

require_once __DIR__ . '/../../../autoload.php';
require_once __DIR__ . '/../../../examples/symfony/src/LazyObjects.php';
// Symfony 6 asks Composer which packages are installed: this class is in Debian's package composer.
is_file($composer = '/usr/share/php/Composer/InstalledVersions.php') && require_once $composer;
foreach (['Bundle/FrameworkBundle', 'Bundle/TwigBundle', 'Component/HttpClient'] as $library) {
    require_once "/usr/share/php/Symfony/$library/autoload.php";
}
foreach (['Doctrine/DBAL', 'Doctrine/ORM', 'Twig'] as $library) {
    require_once "/usr/share/php/$library/autoload.php";
}
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Weft\\Bench\\Frameworks\\Symfony\\')) {
        require __DIR__ . '/' . substr($class, strlen('Weft\\Bench\\Frameworks\\Symfony\\')) . '.php';
    }
});
