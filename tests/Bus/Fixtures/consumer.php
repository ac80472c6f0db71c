<?php

declare(strict_types=1);

/*
 * php consumer.php DSN [COMMANDS]: handles the queue "customers" of a broker that shares the handlers' database until it is empty.
 * Its handlers wait for ever after so many commands; 0, the default, means never.
 */

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

use function Weft\delay;
use function Weft\run;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/messages.php';

run(static function () use ($argv): void {
    $database = Database::connect($argv[1]);
    $bus = Bus::connect($argv[1], $database)->handlers(new class ((int) ($argv[2] ?? 0)) {
        private int $begun = 0;

        public function __construct(private readonly int $stuckAfter) {}

        #[CommandHandler]
        public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
        {
            while (++$this->begun > $this->stuckAfter && $this->stuckAfter > 0) {
                delay(600.0);
            }
            $transaction->execute('INSERT INTO customers (id, process) VALUES (?, ?)', [$command->id, \getmypid()]);
            $context->publish(new CustomerStored($command->id));
        }

        #[EventListener]
        public function stored(CustomerStored $event, Transaction $transaction): void
        {
            $transaction->execute('INSERT INTO heard (id) VALUES (?)', [$event->id]);
        }
    });
    $bus->consume('customers', concurrency: 50, options: new ConsumeOptions(stopWhenEmpty: true));
    $bus->close();
    $database->close();
});
