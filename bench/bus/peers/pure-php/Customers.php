<?php

declare(strict_types=1);

final class Customers
{
    private const PREFETCH = 100;
    /** Commands that may be without a confirm while the queue is filled. */
    private const WINDOW = 256;
    private const CONFIRM_SECONDS = 30.0;

    public int $commands = 0;
    public int $events = 0;
    public float $commandsFinished = 0.0;
    public float $eventsFinished = 0.0;

    private AMQPExchange $exchange;
    private AMQPQueue $queue;
    private PDOStatement $insert;
    private int $published = 0;
    private int $confirmed = 0;

    /** @param AMQPConnection|null $publisher a connection of its own for what is published, with confirms; null: none */
    public function __construct(
        AMQPConnection $broker,
        private readonly ?AMQPConnection $publisher,
        private readonly PDO $database,
        private readonly string $queueName,
        private readonly int $total,
        private readonly bool $persistent,
    ) {
        $channel = new AMQPChannel($broker);
        $channel->setPrefetchCount(self::PREFETCH);
        $this->exchange = new AMQPExchange($publisher === null ? $channel : $this->confirming($publisher));
        $this->queue = new AMQPQueue($channel);
        $this->queue->setName($queueName);
        $this->queue->setFlags(AMQP_DURABLE);
        $this->queue->declareQueue();
        $this->insert = $database->prepare('INSERT INTO customers (id, name, email) VALUES (?, ?, ?)');
    }

    public function fill(): void
    {
        for ($i = 0; $i < $this->total; ++$i) {
            $this->publish('StoreCustomer', ['id' => self::uuid(), 'name' => "name_$i", 'email' => 'name@qwerty.root']);
            $i % self::WINDOW === 0 && $this->awaitConfirms();
        }
        $this->awaitConfirms();
    }

    /** Returns when the last event is acknowledged. */
    public function drain(): void
    {
        $this->queue->consume(function (AMQPEnvelope $envelope): bool {
            $message = json_decode($envelope->getBody(), true, flags: JSON_THROW_ON_ERROR);
            match ($envelope->getType()) {
                'StoreCustomer' => $this->store($message),
                'CustomerStored' => ++$this->events,
            };
            $this->queue->ack($envelope->getDeliveryTag());

            return $this->goesOn();
        });
    }

    /** @param array{id: string, name: string, email: string} $command */
    private function store(array $command): void
    {
        $this->database->beginTransaction();
        $this->insert->execute([$command['id'], $command['name'], $command['email']]);
        $this->publish('CustomerStored', ['id' => $command['id']]);
        $this->awaitConfirms();
        $this->database->commit();
        ++$this->commands;
    }

    private function goesOn(): bool
    {
        if ($this->commands === $this->total && $this->events === 0) {
            $this->commandsFinished = microtime(true);
        }
        if ($this->events < $this->total) {
            return true;
        }
        $this->eventsFinished = microtime(true);

        return false;
    }

    /** @param array<string, string> $message */
    private function publish(string $type, array $message): void
    {
        $this->exchange->publish(json_encode($message, JSON_THROW_ON_ERROR), $this->queueName, AMQP_NOPARAM, [
            'type' => $type,
            'content_type' => 'application/json',
            'delivery_mode' => $this->persistent ? 2 : 1,
        ]);
        ++$this->published;
    }

    /** On a connection of its own, because deliveries must not come in between. */
    private function confirming(AMQPConnection $publisher): AMQPChannel
    {
        $channel = new AMQPChannel($publisher);
        $channel->confirmSelect();
        $channel->setConfirmCallback(
            function (int $tag): bool {
                $this->confirmed = $tag;

                return $this->confirmed < $this->published;
            },
            static fn (int $tag) => throw new RuntimeException("the broker refused message $tag"),
        );

        return $channel;
    }

    private function awaitConfirms(): void
    {
        if ($this->publisher !== null && $this->confirmed < $this->published) {
            $this->exchange->getChannel()->waitForConfirm(self::CONFIRM_SECONDS);
        }
    }

    private static function uuid(): string
    {
        $bytes = random_bytes(16);
        $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
        $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);

        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    }
}
