<?php

declare(strict_types=1);

// The extension amqp: publishes a window of messages of 100 bytes and waits for its confirms, or takes and acknowledges them one by one.

[$queueName, $total, $window] = [(string) getenv('BENCH_QUEUE'), (int) getenv('MESSAGES'), (int) getenv('WINDOW')];
$url = parse_url((string) getenv('AMQP_URL'));
$connection = new AMQPConnection([
    'host' => $url['host'],
    'port' => $url['port'],
    'vhost' => rawurldecode(ltrim($url['path'] ?? '/', '/')) ?: '/',
    'login' => rawurldecode($url['user']),
    'password' => rawurldecode($url['pass']),
]);
$connection->connect();
$channel = new AMQPChannel($connection);
if ($argv[1] === 'publish') {
    $exchange = new AMQPExchange($channel);
    $body = str_repeat('x', (int) getenv('BYTES'));
    $unconfirmed = 0;
    $last = 0;
    $channel->setConfirmCallback(static function (int $tag, bool $multiple) use (&$last): bool {
        $last = max($last, $tag);

        return $last < $GLOBALS['sent'];
    });
    $channel->confirmSelect();
    $started = hrtime(true);
    for ($sent = 1; $sent <= $total; ++$sent) {
        $exchange->publish($body, $queueName, AMQP_NOPARAM, ['delivery_mode' => AMQP_DURABLE]);
        if ($sent % $window === 0 || $sent === $total) {
            $last < $sent && $channel->waitForConfirm();
        }
    }
} else {
    $channel->setPrefetchCount($window);
    $queue = new AMQPQueue($channel);
    $queue->setName($queueName);
    $taken = 0;
    $started = hrtime(true);
    $queue->consume(static function (AMQPEnvelope $message, AMQPQueue $queue) use (&$taken, $total): bool {
        $queue->ack($message->getDeliveryTag());

        return ++$taken < $total;
    });
    $queue->cancel();
}
$seconds = (hrtime(true) - $started) / 1e9;
$connection->disconnect();
echo json_encode(['seconds' => $seconds]), "\n";
