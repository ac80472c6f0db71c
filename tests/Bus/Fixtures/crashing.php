<?php

declare(strict_types=1);

/* php crashing.php classic|quorum|postgres BROKER DATABASE CRASHES: handles the queue "customers" until it comes to the one that kills it. */

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\InboxOptions;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

use function Weft\run;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/messages.php';

run(static function () use ($argv): void {
    [, $kind, $broker, $dsn, $crashes] = $argv;
    $database = Database::connect($dsn);
    $transport = match ($kind) {
        'classic' => $broker,
        'quorum' => RabbitMq::connect($broker, queue: RabbitMqQueue::quorum()),
        'postgres' => $dsn,
    };
    $bus = Bus::connect($transport, $database, new BusOptions(inbox: new InboxOptions(maxCrashes: (int) $crashes)))->handlers(new class {
        #[CommandHandler]
        public function store(StoreCustomer $command, Transaction $transaction): void
        {
            $transaction->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'stored']);
            if ($command->id === 'crash') {
                \posix_kill(\getmypid(), \SIGSEGV);
            }
        }
    });
    $bus->consume('customers', concurrency: 20);
});
