<?php

declare(strict_types=1);

/* php limited.php DATABASE HANDLERS: calls a handler as often as the rate that all such processes share allows, with so many that wait, and prints when it was called, until it is told to stop. */

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\RateLimit;
use Weft\Sql\Database;

use function Weft\run;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/messages.php';

run(static function () use ($argv): void {
    $database = Database::connect($argv[1]);
    $bus = Bus::connect('memory:', $database)->handlers(new class {
        #[CommandHandler]
        #[RateLimit(perSecond: 100.0, burst: 1, shared: true, name: 'gateway')]
        public function store(StoreCustomer $command): void
        {
            \printf("%.6F\n", \microtime(true));
        }
    });
    $bus->queue('customers')->declare();
    $bus->sendAll((static function (): iterable {
        for ($id = 0; $id < 5_000; $id++) {
            yield new StoreCustomer((string) $id, 'name', 'name@example.org');
        }
    })());
    $bus->consume('customers', concurrency: (int) $argv[2]);
    $bus->close();
    $database->close();
});
