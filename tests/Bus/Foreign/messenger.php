<?php

declare(strict_types=1);

// A producer and a consumer of RabbitMQ for ForeignProgramsTest, with symfony/messenger, its AMQP transport and its JSON.
//
// usage: php messenger.php produce|consume

namespace App\Message {
    final class PlaceOrder
    {
        public function __construct(public readonly string $id, public readonly int $quantity, public readonly ?\DateTimeImmutable $at = null)
        {
        }
    }
}

namespace {
    use App\Message\PlaceOrder;
    use Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpTransport;
    use Symfony\Component\Messenger\Bridge\Amqp\Transport\Connection;
    use Symfony\Component\Messenger\Envelope;
    use Symfony\Component\Messenger\Stamp\BusNameStamp;
    use Symfony\Component\Messenger\Transport\Serialization\Serializer;
    use Symfony\Component\PropertyInfo\Extractor\ReflectionExtractor;
    use Symfony\Component\Serializer\Encoder\JsonEncoder;
    use Symfony\Component\Serializer\Normalizer\ArrayDenormalizer;
    use Symfony\Component\Serializer\Normalizer\DateTimeNormalizer;
    use Symfony\Component\Serializer\Normalizer\ObjectNormalizer;

    require 'Symfony/Component/Messenger/autoload.php';
    require 'Symfony/Component/Messenger/Bridge/Amqp/autoload.php';
    require 'Symfony/Component/Serializer/autoload.php';
    require 'Symfony/Component/PropertyAccess/autoload.php';
    require 'Symfony/Component/PropertyInfo/autoload.php';

    $transport = new AmqpTransport(
        Connection::fromDsn((string) getenv('AMQP_URL'), ['exchange' => ['name' => 'shop', 'type' => 'topic', 'default_publish_routing_key' => 'orders.in'], 'queues' => [
            'shop.in' => ['binding_keys' => ['orders.in']],
            'shop.out' => ['binding_keys' => ['orders.out']],
        ]]),
        new Serializer(new Symfony\Component\Serializer\Serializer(
            [new DateTimeNormalizer(), new ArrayDenormalizer(), new ObjectNormalizer(propertyTypeExtractor: new ReflectionExtractor())],
            [new JsonEncoder()],
        )),
    );
    $transport->setup();

    if ($argv[1] === 'produce') {
        $transport->send(new Envelope(new PlaceOrder('symfony-1', 3, new DateTimeImmutable('2026-03-04T05:06:07+00:00')), [new BusNameStamp('command.bus')]));
        exit;
    }
    $deadline = microtime(true) + 60.0;
    do {
        foreach ($transport->getFromQueues(['shop.out']) as $envelope) {
            $transport->ack($envelope);
            $message = $envelope->getMessage();
            $stamp = $envelope->last(BusNameStamp::class);
            echo json_encode([
                'class' => $message::class,
                'id' => $message->id,
                'quantity' => $message->quantity,
                'at' => $message->at?->format(DATE_ATOM),
                'bus' => $stamp instanceof BusNameStamp ? $stamp->getBusName() : null,
            ], JSON_THROW_ON_ERROR), "\n";
            exit;
        }
        usleep(20_000);
    } while (microtime(true) < $deadline);
    fwrite(STDERR, "no order arrived within 60 seconds\n");
    exit(1);
}
