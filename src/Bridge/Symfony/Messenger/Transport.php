<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\LogicException;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\SetupableTransportInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;
use Weft\Bridge\Symfony\Internal\BusFactory;
use Weft\Bus\Bus;
use Weft\Bus\SendOptions;
use Weft\Runtime\Local;

/**
 * Sends messages of Messenger by the bus. Inside of a handler that `weft:messenger:consume` runs they belong to its effects: they leave
 * only if it succeeds.
 *
 * Messages are received by `weft:messenger:consume`, which handles many at once; Messenger's own command takes one after the other.
 */
final class Transport implements TransportInterface, SetupableTransportInterface
{
    /** @var Local<\Weft\Bus\Context|null>|null the message that is handled by this task */
    private static ?Local $handled = null;

    /** @internal made by {@see TransportFactory} */
    public function __construct(
        private readonly Bus $bus,
        private readonly BusFactory $buses,
        private readonly SerializerInterface $serializer,
        private readonly string $queue,
    ) {
    }

    /** @return Local<\Weft\Bus\Context|null> */
    public static function handled(): Local
    {
        if (self::$handled === null) {
            /** @var Local<\Weft\Bus\Context|null> $local */
            $local = new Local(inDetached: false);
            self::$handled = $local;
        }

        return self::$handled;
    }

    public function send(Envelope $envelope): Envelope
    {
        $delay = $envelope->last(DelayStamp::class);
        // DelayStamp::delayUntil() of a time in the past is below 0.
        $options = $delay instanceof DelayStamp ? new SendOptions(delay: \max(0.0, $delay->getDelay() / 1_000.0)) : null;
        $encoded = $this->serializer->encode($envelope);
        // As the transports of Messenger do, unless told otherwise.
        $this->buses->once($this->queue, $this->setup(...));
        $class = QueueType::message($this->queue);
        $packed = new $class($encoded['body'], $encoded['headers'] ?? []);
        $id = (self::handled()->value() ?? $this->bus)->send($packed, $options);

        return $envelope->with(new TransportMessageIdStamp($id));
    }

    public function setup(): void
    {
        $handler = QueueType::handler($this->queue);
        $this->buses->create([new $handler(null, $this->queue)])->queue($this->queue)->declare();
    }

    public function get(): iterable
    {
        throw new LogicException("Messages of weft://{$this->queue} are received by: bin/console weft:messenger:consume {$this->queue}");
    }

    public function ack(Envelope $envelope): void
    {
    }

    public function reject(Envelope $envelope): void
    {
    }
}
