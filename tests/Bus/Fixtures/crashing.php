<?php

declare(strict_types=1);

/* php crashing.php BROKER DATABASE CRASHES: handles the queue "customers" until it comes to the one that kills it. */

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\Recording;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

use function Weft\run;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/messages.php';

run(static function () use ($argv): void {
    $database = Database::connect($argv[2]);
    $bus = Bus::connect($argv[1], $database, recording: new Recording(crashes: (int) $argv[3]))->handlers(new class {
        #[CommandHandler]
        public function store(StoreCustomer $command, Transaction $transaction): void
        {
            $transaction->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'stored']);
            if ($command->id === 'crash') {
                \posix_kill(\getmypid(), \SIGKILL);
            }
        }
    });
    $bus->consume('customers', concurrency: 20);
});
