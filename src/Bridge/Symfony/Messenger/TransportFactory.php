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
        return new Transport($this->bus, $this->buses, $serializer, self::queue($dsn));
    }

    public function supports(#[\SensitiveParameter] string $dsn, array $options): bool
    {
        return self::isOwn($dsn);
    }

    /** @internal whether it is `weft://queue` */
    public static function isOwn(#[\SensitiveParameter] string $dsn): bool
    {
        return \str_starts_with($dsn, 'weft://');
    }

    /**
     * @internal the queue of `weft://queue`
     *
     * @throws InvalidArgumentException
     */
    public static function queue(#[\SensitiveParameter] string $dsn): string
    {
        $queue = \rtrim(\substr($dsn, \strlen('weft://')), '/');
        if (\preg_match('/^[\w.-]+$/', $queue) !== 1) {
            throw new InvalidArgumentException("The DSN of the transport names no queue: it is \"$dsn\", and has to be like weft://orders");
        }

        return $queue;
    }
}
