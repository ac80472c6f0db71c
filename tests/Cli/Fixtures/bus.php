<?php

declare(strict_types=1);

/* The bus of BusCommandsTest: one file, WEFT_TEST_FILE, is broker and database. */

namespace Weft\Tests\Cli\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Saga\Fixtures\Checkout;

require_once __DIR__ . '/../../Bus/Fixtures/messages.php';
require_once __DIR__ . '/../../Bus/Saga/Fixtures/checkout.php';

return static function (): Bus {
    $dsn = 'sqlite://' . \getenv('WEFT_TEST_FILE');
    $database = Database::connect($dsn);
    $database->execute('CREATE TABLE IF NOT EXISTS customers (id TEXT)');

    return Bus::connect($dsn, $database)->handlers(Checkout::class, new class {
        #[CommandHandler]
        public function store(StoreCustomer $command, Transaction $transaction): void
        {
            if ($command->name === 'nobody') {
                throw new \DomainException('customers have names');
            }
            if ($command->name === 'error') {
                throw new \DomainException($command->email);
            }
            $transaction->execute('INSERT INTO customers VALUES (?)', [$command->id]);
        }
    });
};
