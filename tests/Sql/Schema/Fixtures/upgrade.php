<?php

declare(strict_types=1);

/* php upgrade.php <DSN>: upgrades or creates all tables, as a worker does when it starts. */

namespace Weft\Tests\Sql\Schema\Fixtures;

use Weft\Cli\Internal\Components;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Migrator;

use function Weft\run;

require __DIR__ . '/../../../../autoload.php';

run(static function () use ($argv): void {
    $database = Database::connect($argv[1]);
    foreach (Components::of($database->driver()) as $component) {
        (new Migrator($database))->ensure($component);
    }
});
