<?php

declare(strict_types=1);

namespace App;

use Amp\Loop;
use ServiceBus\Application\Bootstrap;
use ServiceBus\Application\ServiceBusKernel;
use ServiceBus\Common\Metadata\ServiceBusMetadata;
use ServiceBus\Endpoint\EndpointEncoder;
use ServiceBus\Endpoint\Options\DefaultDeliveryOptions;
use ServiceBus\EntryPoint\EntryPoint;
use ServiceBus\Storage\Module\SqlStorageModule;
use ServiceBus\Transport\Amqp\AmqpExchange;
use ServiceBus\Transport\Amqp\AmqpQueue;
use ServiceBus\Transport\Amqp\AmqpTransportLevelDestination;
use ServiceBus\Transport\Common\Package\OutboundPackage;
use ServiceBus\Transport\Common\QueueBind;
use ServiceBus\Transport\Common\Transport;
use ServiceBus\Transport\Module\PhpInnacleTransportModule;
use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;

use function ServiceBus\Common\uuid;

/** The library as its authors' comparison wires it: one exchange and one queue, 100 messages in flight. */
final class Application
{
    private const EXCHANGE = 'demo';
    private const ROUTING_KEY = 'demo';
    /** As in that comparison. It never binds: the prefetch of 100 does. */
    private const TASKS = 250;
    private const CHECK_MILLISECONDS = 10;

    private readonly ServiceBusKernel $kernel;
    private readonly Transport $transport;
    private readonly AmqpQueue $queue;

    public function __construct(string $amqpUrl, string $databaseUrl, string $queue, private readonly bool $persistent)
    {
        $parts = parse_url($amqpUrl);
        $vhost = rawurldecode(ltrim($parts['path'] ?? '/', '/')) ?: '/';
        $broker = sprintf('amqp://%s:%s@%s:%d?vhost=%s', $parts['user'], $parts['pass'], $parts['host'], $parts['port'] ?? 5672, rawurlencode($vhost));
        parse_str(parse_url($databaseUrl, PHP_URL_QUERY) ?? '', $options);
        // The DSN of the library has no such option; libpq reads the variable.
        putenv('PGSSLMODE=' . ($options['sslmode'] ?? 'prefer'));
        $database = preg_replace(['#^postgres#', '#\?.*$#'], ['pgsql', ''], $databaseUrl);

        $container = $this->bootstrap($broker, $database)->boot();
        $this->kernel = new ServiceBusKernel($container);
        $this->transport = $container->get('service_bus.public_services_locator')->get(Transport::class);
        $this->queue = AmqpQueue::default($queue, true);
    }

    /** Returns when the last command was written to the socket. */
    public function fill(int $commands): void
    {
        Loop::run(function () use ($commands): \Generator {
            yield $this->kernel->createQueue($this->queue, new QueueBind(AmqpExchange::direct(self::EXCHANGE, true), self::ROUTING_KEY));
            $encoder = EndpointEncoder::createDefault();
            $destination = new AmqpTransportLevelDestination(self::EXCHANGE, self::ROUTING_KEY);
            $headers = [
                ServiceBusMetadata::SERVICE_BUS_MESSAGE_TYPE => StoreCustomer::class,
                ServiceBusMetadata::SERVICE_BUS_SERIALIZER_TYPE => $encoder->tag,
                'content-type' => $encoder->handler->contentType(),
            ];
            for ($i = 0; $i < $commands; ++$i) {
                $body = $encoder->handler->encode(new StoreCustomer(uuid(), "name_$i", 'name@qwerty.root'));
                yield $this->transport->send(new OutboundPackage(uuid(), $body, $headers, $destination, $this->persistent));
            }
            Loop::stop();
        });
    }

    /** Returns when the last event is acknowledged. */
    public function consume(Progress $progress): void
    {
        Customers::$progress = $progress;
        Customers::$delivery = $this->persistent ? DefaultDeliveryOptions::create() : DefaultDeliveryOptions::nonPersistent();
        $progress->finished = fn () => Loop::defer(function () use ($progress): \Generator {
            // The broker answers when it has seen all acknowledgements that were sent before.
            yield $this->transport->stop();
            yield $this->transport->disconnect();
            $progress->eventsFinished = microtime(true);
            Loop::stop();
        });
        Loop::run(fn () => $this->kernel->run($this->queue));
    }

    private function bootstrap(string $broker, string $database): Bootstrap
    {
        $tasks = new class (self::TASKS, self::CHECK_MILLISECONDS) implements CompilerPassInterface {
            public function __construct(private readonly int $tasks, private readonly int $milliseconds)
            {
            }

            public function process(ContainerBuilder $container): void
            {
                $entryPoint = $container->getDefinition(EntryPoint::class);
                $entryPoint->setArgument('$maxConcurrentTaskCount', $this->tasks);
                $entryPoint->setArgument('$awaitDelay', $this->milliseconds);
            }
        };
        $cache = sys_get_temp_dir() . '/weft-bench-service-bus';
        @mkdir($cache);

        return Bootstrap::create(dirname(__DIR__), 'bench', 'prod')
            ->useCustomCacheDirectory($cache)
            ->addCompilerPasses($tasks)
            ->enableAutoImportMessageHandlers([__DIR__])
            ->applyModules(
                new PhpInnacleTransportModule($broker, self::EXCHANGE, self::ROUTING_KEY),
                SqlStorageModule::postgreSQL($database),
            );
    }
}
