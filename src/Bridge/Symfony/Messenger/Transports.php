<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

use Psr\Container\ContainerInterface;
use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;

/**
 * The transports `weft://queue` that the configuration of Messenger names. A consumer knows its queue: handlers are registered for the name of
 * a transport, and each transport may have a serializer of its own.
 *
 * @internal
 */
final class Transports
{
    /** @var array<string, string>|null by name, known when the first is asked for: a DSN may be known at run time only */
    private ?array $queues = null;

    /**
     * @param array<string, string> $dsns of all transports, by name
     * @param ContainerInterface $serializers of all transports, by name
     */
    public function __construct(#[\SensitiveParameter] private readonly array $dsns, private readonly ContainerInterface $serializers)
    {
    }

    /**
     * The name of the transport of a queue, the first one if several have it.
     *
     * @throws InvalidArgumentException no transport has the queue
     */
    public function name(string $queue): string
    {
        $this->queues ??= \array_map(TransportFactory::queue(...), \array_filter($this->dsns, TransportFactory::isOwn(...)));
        $name = \array_search($queue, $this->queues, true);
        if ($name === false) {
            $known = $this->queues === [] ? 'none' : \implode(', ', \array_unique($this->queues));
            throw new InvalidArgumentException("No transport of framework.messenger has the queue \"$queue\". Queues of transports: $known");
        }

        return (string) $name;
    }

    /** @param string $name of the transport */
    public function serializer(string $name): SerializerInterface
    {
        /** @var SerializerInterface */
        return $this->serializers->get($name);
    }
}
