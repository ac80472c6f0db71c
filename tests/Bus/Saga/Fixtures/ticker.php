<?php

declare(strict_types=1);

/* php ticker.php <broker DSN> <database DSN>: handles what is in the queue "tickers", and notes in the table `ticked` what was published. */

namespace Weft\Tests\Bus\Saga\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\EventListener;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

use function Weft\run;

require __DIR__ . '/../../../../autoload.php';
require __DIR__ . '/steps.php';

run(static function () use ($argv): void {
    $database = Database::connect($argv[2]);
    Bus::connect($argv[1], $database)->handlers(Ticker::class, new class {
        #[EventListener]
        public function ticked(Ticked $event, Transaction $transaction): void
        {
            $transaction->execute('INSERT INTO ticked (id, number) VALUES (?, ?)', [$event->id, $event->number]);
        }
    })->consume('tickers');
});
