<?php

declare(strict_types=1);

/* php draining.php BROKER DATABASE PUBLISHING SECONDS: handles the queue "customers" without transactions, for so long each, until it is told to stop. */

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\DeliveryGuarantee;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;

use function Weft\delay;
use function Weft\detach;
use function Weft\run;
use function Weft\signal;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/messages.php';

run(static function () use ($argv): void {
    [, $broker, $dsn, $guarantee, $seconds] = $argv;
    $database = Database::connect($dsn, new PoolOptions(size: 10));
    $bus = Bus::connect($broker, $database, new BusOptions(guarantee: \constant(DeliveryGuarantee::class . "::{$guarantee}")))->handlers(new class ($database, (float) $seconds) {
        public function __construct(private readonly Database $database, private readonly float $seconds) {}

        #[CommandHandler]
        public function store(StoreCustomer $command, Context $context): void
        {
            $this->database->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'begun']);
            $context->failedAttempts() === 0 || $this->database->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'counted']);
            delay($this->seconds);
            $this->database->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'done']);
        }
    });
    detach(static function () use ($database): void {
        signal(\SIGTERM);
        $database->execute('INSERT INTO effects VALUES (?, ?)', ['', 'told']);
    });
    $bus->consume('customers', concurrency: 50);
    $bus->close();
});
