<?php

declare(strict_types=1);

// Weft's AMQP client: publishes messages of 100 bytes with confirms, or takes and acknowledges them one by one.

use Weft\Amqp\Connection;
use Weft\Amqp\Message;

use function Weft\run;

require __DIR__ . '/../../../autoload.php';

/** @return iterable<Message> */
function messages(int $total, int $bytes): iterable
{
    $message = new Message(str_repeat('x', $bytes));
    for ($i = 0; $i < $total; ++$i) {
        yield $message;
    }
}

echo json_encode(run(static function () use ($argv): array {
    [$queue, $total, $window] = [(string) getenv('BENCH_QUEUE'), (int) getenv('MESSAGES'), (int) getenv('WINDOW')];
    $connection = Connection::connect((string) getenv('AMQP_URL'));
    if ($argv[1] === 'publish') {
        $publisher = $connection->publisher(window: $window);
        $started = hrtime(true);
        $publisher->publishAll(messages($total, (int) getenv('BYTES')), routingKey: $queue);
    } else {
        $consumer = $connection->consume($queue, prefetch: $window);
        $started = hrtime(true);
        for ($taken = 0; $taken < $total;) {
            foreach ($consumer->next($window) as $delivery) {
                $consumer->ack($delivery);
                ++$taken;
            }
        }
        $consumer->flush();
    }
    $seconds = (hrtime(true) - $started) / 1e9;
    $connection->close();

    return ['seconds' => $seconds];
})), "\n";
