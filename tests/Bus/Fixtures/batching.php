<?php

declare(strict_types=1);

/* php batching.php BROKER DATABASE: handles the queue "customers" in batches until it is killed. */

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\Batch;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\EventListener;
use Weft\Bus\InboxOptions;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

use function Weft\delay;
use function Weft\run;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/messages.php';

run(static function () use ($argv): void {
    $bus = Bus::connect($argv[1], Database::connect($argv[2]), new BusOptions(inbox: new InboxOptions(relayAfter: 0.5)))->handlers(new class {
        #[CommandHandler]
        #[Batch(StoreCustomer::class, size: 50, window: 0.01)]
        public function store(array $items, Transaction $transaction): void
        {
            foreach ($items as $item) {
                if ($item->message->id === '77') {
                    $item->fail(new \DomainException('never'));
                    continue;
                }
                $transaction->execute('INSERT INTO effects (id, listener) VALUES (?, ?)', [$item->message->id, 'store']);
                $item->context->publish(new CustomerStored($item->message->id));
            }
            delay(0.01);
        }

        #[EventListener]
        #[Batch(CustomerStored::class, size: 50, window: 0.01)]
        public function stored(array $items, Transaction $transaction): void
        {
            foreach ($items as $item) {
                $transaction->execute('INSERT INTO effects (id, listener) VALUES (?, ?)', [$item->message->id, 'stored']);
            }
        }
    });
    $bus->consume('customers', concurrency: 5, options: new ConsumeOptions(prefetch: 300));
});
