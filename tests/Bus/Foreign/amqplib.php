<?php

declare(strict_types=1);

// A producer and a consumer of RabbitMQ for ForeignProgramsTest, with php-amqplib: the format of php-service-bus version 4, and raw bytes.
//
// usage: php amqplib.php declare|produce|consume

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

require 'PhpAmqpLib/autoload.php';

const EXCHANGE = 'old.application';
const COMMANDS = 'old.commands';
const IMAGES = 'old.images';

$url = parse_url((string) getenv('AMQP_URL'));
$connection = new AMQPStreamConnection($url['host'], $url['port'], rawurldecode($url['user']), rawurldecode($url['pass']), rawurldecode(substr($url['path'], 1)));
$channel = $connection->channel();

match ($argv[1]) {
    'declare' => (static function () use ($channel): void {
        $channel->exchange_declare(EXCHANGE, 'direct', false, true, false);
        foreach ([COMMANDS => 'commands', IMAGES => 'images'] as $queue => $key) {
            $channel->queue_declare($queue, false, true, false, false);
            $channel->queue_bind($queue, EXCHANGE, $key);
        }
    })(),
    'produce' => (static function () use ($channel): void {
        $body = json_encode(['message' => ['id' => 'c-1', 'name' => 'Zoë', 'email' => 'zoe@example.org'], 'namespace' => 'App\StoreCustomerCommand'], JSON_THROW_ON_ERROR);
        $channel->basic_publish(new AMQPMessage($body, [
            'content_type' => 'application/json',
            'delivery_mode' => AMQPMessage::DELIVERY_MODE_PERSISTENT,
            'application_headers' => new AMQPTable(['X-SERVICE-BUS-TRACE-ID' => '0af76519-16cd-43dd-8448-eb211c80319c', 'X-SERVICE-BUS-ENCODER' => 'service_bus.encoder.default_handler']),
        ]), EXCHANGE, 'commands');
        $channel->basic_publish(new AMQPMessage('not a message'), EXCHANGE, 'commands');
    })(),
    'consume' => (static function () use ($channel): void {
        $message = null;
        $channel->basic_consume(IMAGES, '', false, false, false, false, static function (AMQPMessage $delivery) use (&$message): void {
            $delivery->ack();
            $message = $delivery;
        });
        while ($message === null) {
            $channel->wait(timeout: 60);
        }
        $headers = $message->has('application_headers') ? $message->get('application_headers')->getNativeData() : [];
        echo json_encode([
            'exchange' => $message->getExchange(),
            'key' => $message->getRoutingKey(),
            'type' => $message->has('type') ? $message->get('type') : null,
            'contentType' => $message->get('content_type'),
            'headers' => $headers,
            'body' => base64_encode($message->getBody()),
        ], JSON_THROW_ON_ERROR), "\n";
    })(),
};
$connection->close();
