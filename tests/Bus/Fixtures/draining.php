<?php

declare(strict_types=1);

/* php draining.php BROKER DATABASE: handles the queue "customers" without inbox and without transactions, until it is told to stop. */

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\Publishing;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;

use function Weft\delay;
use function Weft\run;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/messages.php';

run(static function () use ($argv): void {
    $database = Database::connect($argv[2], new PoolOptions(size: 10));
    $bus = Bus::connect($argv[1], $database, Publishing::AfterCommitUnrecorded)->handlers(new class ($database) {
        public function __construct(private readonly Database $database) {}

        #[CommandHandler]
        public function store(StoreCustomer $command): void
        {
            $this->database->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'begun']);
            delay(0.01);
            $this->database->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'done']);
        }
    });
    $bus->consume('customers', concurrency: 50);
    $bus->close();
});
