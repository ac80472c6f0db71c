<?php

declare(strict_types=1);

/*
 * What Composer writes to vendor/autoload_runtime.php, for Debian's packages: classes from /usr/share/php, and the runtime around the
 * function that the front controller returns.
 */

require_once __DIR__ . '/../../autoload.php';
// Symfony 6 asks Composer which packages are installed: this class is in Debian's package composer.
is_file($composer = '/usr/share/php/Composer/InstalledVersions.php') && require_once $composer;
foreach (['Bundle/FrameworkBundle', 'Bundle/SecurityBundle', 'Bundle/TwigBundle', 'Component/Form', 'Component/HttpClient', 'Component/Mailer', 'Component/Messenger', 'Component/Runtime', 'Component/Validator'] as $library) {
    require_once "/usr/share/php/Symfony/$library/autoload.php";
}
foreach (['Doctrine/DBAL', 'Doctrine/ORM', 'Twig'] as $library) {
    require_once "/usr/share/php/$library/autoload.php";
}
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'App\\') && is_file($file = __DIR__ . '/src/' . strtr(substr($class, 4), '\\', '/') . '.php')) {
        require $file;
    }
});

if (realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    return;
}

$runtime = $_SERVER['APP_RUNTIME'] ?? Weft\Bridge\Symfony\Runtime::class;
$runtime = new $runtime(($_SERVER['APP_RUNTIME_OPTIONS'] ?? []) + ['project_dir' => __DIR__, 'disable_dotenv' => true]);
[$application, $arguments] = $runtime->getResolver(require $_SERVER['SCRIPT_FILENAME'])->resolve();

exit($runtime->getRunner($application(...$arguments))->run());
