<?php

declare(strict_types=1);

/* A bus whose messages are in order and of which the first of each account fails; WEFT_TEST_FILE is broker and database. */

namespace Weft\Tests\Cli\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\Deposit;

require_once __DIR__ . '/../../Bus/Fixtures/ordered.php';

return static function (): Bus {
    $dsn = 'sqlite://' . \getenv('WEFT_TEST_FILE');

    return Bus::connect($dsn, Database::connect($dsn))->handlers(new class {
        #[CommandHandler]
        public function deposit(Deposit $command): void
        {
            if ($command->number === 1) {
                throw new \DomainException('the first fails');
            }
        }
    });
};
