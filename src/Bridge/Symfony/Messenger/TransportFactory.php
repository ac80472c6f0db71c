<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;
use Weft\Bridge\Symfony\Internal\BusFactory;
use Weft\Bus\Bus;

/** Makes the transport `weft://queue`. */
final class TransportFactory implements TransportFactoryInterface
{
    public function __construct(private readonly Bus $bus, private readonly BusFactory $buses)
    {
    }

    public function createTransport(#[\SensitiveParameter] string $dsn, array $options, SerializerInterface $serializer): TransportInterface
    {
        $queue = \rtrim(\substr($dsn, \strlen('weft://')), '/');
        if (\preg_match('/^[\w.-]+$/', $queue) !== 1) {
            throw new InvalidArgumentException("The DSN of the transport names no queue: it is \"$dsn\", and has to be like weft://orders");
        }

        return new Transport($this->bus, $this->buses, $serializer, $queue);
    }

    public function supports(#[\SensitiveParameter] string $dsn, array $options): bool
    {
        return \str_starts_with($dsn, 'weft://');
    }
}
