<?php

declare(strict_types=1);

/* php depositing.php BROKER DATABASE [quorum]: handles the queue "customers", whose messages are in order, until it is killed. */

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

use function Weft\delay;
use function Weft\run;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/ordered.php';

run(static function () use ($argv): void {
    $broker = RabbitMq::connect($argv[1], queue: ($argv[3] ?? '') === 'quorum' ? RabbitMqQueue::quorum() : null);
    $bus = Bus::connect($broker, Database::connect($argv[2]))->handlers(new class {
        #[CommandHandler]
        public function deposit(Deposit $command, Transaction $transaction): void
        {
            delay(\mt_rand(0, 20) / 1000);
            $transaction->execute('INSERT INTO deposits (account, number) VALUES (?, ?)', [$command->account, $command->number]);
        }
    });
    $bus->consume('customers', concurrency: 20);
});
