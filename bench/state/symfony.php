<?php

declare(strict_types=1);

// The server of `bench/state/run` for Symfony. STATE_VAR is its directory, STATE_SLOTS the number of kernels, STATE_SHARED=1 lets all
// requests run in one kernel, as a server would do that does not isolate them.

use Weft\App;
use Weft\Bench\State\Symfony\Entities;
use Weft\Bench\State\Symfony\Kernel;
use Weft\Http\ApplicationPool;
use Weft\Bridge\Symfony\SymfonyHandler;

require __DIR__ . '/../../autoload.php';
require __DIR__ . '/../autoload.php';
require __DIR__ . '/../../examples/symfony/src/LazyObjects.php';
// Symfony 6 asks Composer which packages are installed: this class is in Debian's package composer.
is_file($composer = '/usr/share/php/Composer/InstalledVersions.php') && require_once $composer;
foreach (['Bundle/FrameworkBundle', 'Bundle/SecurityBundle', 'Component/Translation'] as $library) {
    require_once "/usr/share/php/Symfony/$library/autoload.php";
}
foreach (['Doctrine/DBAL', 'Doctrine/ORM'] as $library) {
    require_once "/usr/share/php/$library/autoload.php";
}
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Weft\\Bench\\State\\Symfony\\')) {
        require __DIR__ . '/symfony/' . substr($class, strlen('Weft\\Bench\\State\\Symfony\\')) . '.php';
    }
});

$slots = (int) getenv('STATE_SLOTS');
// Compiles the container before the first request.
$kernel = new Kernel('prod', false);
$kernel->boot();
Weft\run(static fn() => (new Entities((string) getenv('STATE_DATABASE'), $kernel->getCacheDir() . '/doctrine'))->migrate());
$handler = getenv('STATE_SHARED') === '1'
    ? new SymfonyHandler(new ApplicationPool(static fn(): Closure => static fn($message) => $kernel->handle($message), $slots, 60.0))
    : SymfonyHandler::pool(static fn(): Kernel => new Kernel('prod', false), $slots, 60.0);
$app = new App();
$app->http((string) getenv('STATE_LISTEN'))->fallback($handler);
$app->run(static function (array $addresses): void {
    echo $addresses[0], "\n";
});
